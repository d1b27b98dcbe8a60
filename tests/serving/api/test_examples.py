"""The document of the API is true: it names every route, and its examples work as they are written."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests.architecture.project import ROOT
from tests.real_data import needs_program
from tests.serving.api.served import desk_of, on_a_port, settings_of
from tests.serving.api.test_roles import ROUTES
from vrbot.safety.switch import KillSwitch
from vrbot.serving.app import create_app
from vrbot.serving.store import Store

PAGE = ROOT / "docs" / "api.md"


def test_the_document_names_every_route_and_no_other() -> None:
    named = re.findall(r"^\| `([A-Z]+) (/[^`]+)` \|", PAGE.read_text("utf-8"), re.MULTILINE)
    assert len(named) == len(set(named))
    assert set(named) == set(ROUTES)


def test_every_example_works_as_it_is_written(tmp_path: Path) -> None:
    needs_program("curl")
    needs_program("jq")
    blocks = re.findall(r"^```bash\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    store = Store.open(tmp_path / "desk.sqlite", create=True)
    app = create_app(desk_of(store), settings_of(setup_code="the-code", switch=KillSwitch(tmp_path / "switch")))
    with on_a_port(app) as address:
        script = "set -euo pipefail\n" + "\n".join(blocks)
        environment = {"DESK": address, "CODE": "the-code", "PATH": "/usr/local/bin:/usr/bin:/bin", "no_proxy": "*"}
        done = subprocess.run(
            ["bash", "-c", script], env=environment, capture_output=True, text=True, timeout=120, check=False
        )
    store.close()
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "patient: I have had a cough for three days.\nphysician: Do you have a fever too?" in done.stdout
    assert "data: [DONE]" in done.stdout
