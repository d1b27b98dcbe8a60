"""What a test may need from outside the repository, and what happens when it is not there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NoReturn

import pytest

from vrbot.cli.doctor import find_program

REPOSITORY = Path(__file__).resolve().parent.parent


def real_data(name: str) -> Path:
    """A file or folder of the real data; its absence is a plain skip everywhere, because it cannot be published.

    The data is looked for at the environment variable VRBOT_DATA, else in `shared/data` beside the checkout.
    """
    root = Path(os.environ.get("VRBOT_DATA") or REPOSITORY.parent / "shared" / "data")
    path = root / name
    if not path.exists():
        pytest.skip(f"real data {name!r} is not here: set VRBOT_DATA to the folder that holds it")
    return path


def needs_program(name: str) -> Path:
    """Where a program is; without it the test is skipped, but fails under CI=true, where `make test` installs it."""
    found = find_program(name)
    if found is None:
        missing(f"program {name!r} is not installed: run `make test-programs` as root")
    return Path(found)


def missing(reason: str) -> NoReturn:
    """Skip the test, or fail it under CI=true: there a skip would hide that nothing was tested."""
    if os.environ.get("CI", "").lower() in {"1", "true"}:
        pytest.fail(f"under CI=true this must be present: {reason}")
    pytest.skip(reason)
