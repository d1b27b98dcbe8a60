"""The deployment files are true to the program, to each other and to what they promise."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, cast

import pytest

from tests.architecture.project import ROOT
from tests.deploy.deployment import (
    COMPOSE,
    DATABASE,
    DOCKERFILE,
    FILES,
    IGNORED,
    UNIT,
    arguments_of_build,
    compose,
    page_commands,
    parsed,
    services,
    stages,
    unit,
    unit_settings,
    with_defaults,
)
from vrbot.cli.doctor import find_program
from vrbot.serving.api.health import health_routes
from vrbot.serving.api.meters import Meters
from vrbot.serving.api.settings import AppSettings

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
IMAGES = ("application", "database")
MOST_EXPOSED = 20  # of 100, as `systemd-analyze security --threshold` counts
BARRIERS = {
    "NoNewPrivileges": "yes",
    "ProtectSystem": "strict",
    "ProtectHome": "yes",
    "CapabilityBoundingSet": "",
    "IPAddressDeny": "any",
    "IPAddressAllow": "localhost",
    "UMask": "0077",
}
LEAST_PATIENCE = int(AppSettings().drain_seconds) + 1
SECRET = re.compile(r"(?i)(?:password|passwd|secret|token|api_?key)\w*[ \t]*[=:][ \t]*[^\s$<{]|://[^\s/@:]+:[^\s@]+@")
ELSEWHERE = re.compile(r"(?i)\b(?!example\.)[\w-]+(?:\.[\w-]+)*\.(?:com|io|org|net|dev|cn)\b(?!\w)")


def served(command: str, values: dict[str, str]) -> dict[str, Any]:
    """The parameters of `vrbot serve` that a command line with variables comes to."""
    words = shlex.split(with_defaults(command, values))
    assert words[0] == "serve"
    return parsed(words)


def seconds(text: str) -> int:
    found = re.fullmatch(r"(\d+)s?", text)
    assert found is not None
    return int(found[1])


def started_by_compose(**values: str) -> dict[str, Any]:
    return served(services()["application"]["command"], {"VRBOT_MODEL": "first", **values})


def started_by_unit() -> dict[str, Any]:
    return served(unit()["Service"]["ExecStart"].partition("/vrbot ")[2], unit_settings())


def asked_paths() -> list[tuple[str, str]]:
    """Port and path of every health check that speaks HTTP."""
    checks = [stages()["application"].last("HEALTHCHECK"), *services()["application"]["healthcheck"]["test"]]
    found = re.findall(r"'127\.0\.0\.1', (\d+),.*?'GET', '([^']+)'", "\n".join(checks))
    return [(port, path) for port, path in found]


def test_every_image_of_compose_is_a_stage_of_the_dockerfile() -> None:
    assert sorted(service["build"]["target"] for service in services().values()) == sorted(IMAGES)
    assert set(IMAGES) <= set(stages())


def test_every_stage_starts_from_the_same_small_debian_under_a_bare_name() -> None:
    assert {stage.base for stage in stages().values()} == {"${BASE}"}
    assert re.fullmatch(r"debian:\w+-slim", arguments_of_build()["BASE"])


def test_the_pinned_torch_is_that_of_the_project_and_comes_before_everything_else() -> None:
    assert f"torch=={arguments_of_build()['TORCH']}" in PROJECT["dependencies"]
    installs = [line for line in stages()["build"].all("RUN") if "pip install" in line]
    assert ["torch==${TORCH}" in line for line in installs] == [True, False]


def test_the_extras_of_the_image_are_extras_of_the_project_and_speak_to_postgresql() -> None:
    extras = set(arguments_of_build()["EXTRAS"].split(","))
    assert extras <= set(PROJECT["optional-dependencies"])
    assert "postgres" in extras


def test_the_python_of_both_stages_is_one_the_project_allows() -> None:
    text = DOCKERFILE.read_text("utf-8")
    assert set(re.findall(r"python(3\.\d+)", text)) == {"3.11"}
    assert PROJECT["requires-python"].startswith(">=3.11")


def test_the_image_starts_the_real_program_with_options_it_has() -> None:
    image = stages()["application"]
    assert image.list_of("ENTRYPOINT")[-1] == "vrbot"
    parameters = parsed(image.list_of("CMD"))
    assert (parameters["host"], str(parameters["port"])) == ("0.0.0.0", image.last("EXPOSE"))
    assert not parameters["demo"]


def test_compose_starts_the_real_program_with_options_it_has() -> None:
    parameters = started_by_compose()
    assert (str(parameters["run"]), str(parameters["port"])) == (
        "/models/first",
        stages()["application"].last("EXPOSE"),
    )
    assert parameters["database"] == "postgresql+psycopg://desk@/desk"
    assert not parameters["https"]
    assert started_by_compose(VRBOT_OPTIONS="--https --log-requests")["https"]


def test_the_unit_starts_the_real_program_on_loopback_with_options_it_has() -> None:
    parameters = started_by_unit()
    assert parameters["host"] == "127.0.0.1"
    assert str(parameters["state"]) == "/var/lib/" + unit()["Service"]["StateDirectory"]


def test_every_variable_of_the_unit_is_in_the_example_of_its_settings() -> None:
    used = set(re.findall(r"\$\{?(\w+)", unit()["Service"]["ExecStart"]))
    assert used == set(unit_settings())


def test_every_health_check_asks_a_route_of_the_app_on_the_port_it_serves() -> None:
    routes = {getattr(route, "path", "") for route in health_routes(cast(Any, None), Meters()).routes}
    asked = asked_paths()
    assert [path for _, path in asked] == ["/livez", "/readyz"]
    assert {path for _, path in asked} <= routes
    assert {port for port, _ in asked} == {stages()["application"].last("EXPOSE")}


def test_the_health_check_of_the_image_is_a_program_that_fails_where_nobody_answers() -> None:
    code = stages()["application"].list_of("HEALTHCHECK")[-1].replace("8080", "9").replace("127.0.0.1", "127.0.0.255")
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode != 0


def test_ports_are_published_on_loopback_only_and_the_database_has_no_network() -> None:
    ports = [with_defaults(port, {}) for service in services().values() for port in service.get("ports", [])]
    assert ports == [f"127.0.0.1:8080:{stages()['application'].last('EXPOSE')}"]
    assert services()["database"]["network_mode"] == "none"
    assert "listen_addresses= " in DATABASE.read_text("utf-8")


@pytest.mark.parametrize("name", IMAGES)
def test_no_image_runs_as_root_and_no_service_can_become_root(name: str) -> None:
    assert stages()[name].last("USER").split(":")[0] not in ("root", "0")
    service = services()[name]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["read_only"] is True
    assert service["restart"] == "unless-stopped"


def test_the_desk_has_the_same_number_in_both_images_because_the_socket_tells_who_comes() -> None:
    numbers = {
        re.findall(r"useradd --uid (\d+) --gid desk .* desk\b", stages()[name].all("RUN")[0])[0] for name in IMAGES
    }
    assert numbers == {stages()["application"].last("USER").split(":")[0]}


@pytest.mark.parametrize("name", IMAGES)
def test_what_must_outlive_a_container_is_on_a_volume_that_is_declared(name: str) -> None:
    mounts = [with_defaults(mount, {}).split(":") for mount in services()[name]["volumes"]]
    declared = set(compose()["volumes"])
    assert {source for source, *_ in mounts if not source.startswith(".")} <= declared
    assert set(json.loads(stages()[name].last("VOLUME"))) <= {target for _, target, *_ in mounts}


def test_what_the_program_writes_is_on_a_volume_it_may_write_to_and_the_model_is_not() -> None:
    mounts = [with_defaults(mount, {}).split(":") for mount in services()["application"]["volumes"]]
    writable = {target for _, target, *mode in mounts if mode != ["ro"]}
    parameters = started_by_compose()
    assert {str(parameters["state"]), str(parameters["witness"].parent)} <= writable
    assert str(parameters["run"].parent) not in writable


def test_who_stops_the_program_waits_longer_than_it_takes_to_finish_what_is_under_way() -> None:
    assert seconds(services()["application"]["stop_grace_period"]) > LEAST_PATIENCE
    assert seconds(unit()["Service"]["TimeoutStopSec"]) > LEAST_PATIENCE
    assert stages()["application"].last("STOPSIGNAL") == "SIGTERM"


def test_the_builder_is_sent_everything_it_copies_and_little_else() -> None:
    lines = [line for line in IGNORED.read_text("utf-8").splitlines() if not line.startswith("#")]
    assert lines[0] == "*"
    sent = {line[1:] for line in lines if line.startswith("!")}
    copied = {
        source
        for stage in stages().values()
        for copy in stage.all("COPY")
        if not copy.startswith("--from")
        for source in copy.split()[:-1]
    }
    assert sent == copied
    assert [source for source in copied if not (ROOT / source).exists()] == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_no_file_holds_a_secret_or_the_name_of_a_machine_elsewhere(path: Path) -> None:
    text = path.read_text("utf-8")
    assert [hit.group() for hit in SECRET.finditer(text)] == []
    assert [hit.group() for hit in ELSEWHERE.finditer(text)] == []


@pytest.mark.parametrize(
    "text",
    ["POSTGRES_PASSWORD: hunter", "token=abc", "postgresql://desk:hunter@db/desk", "FROM registry.example.io/debian"],
)
def test_the_check_knows_a_secret_and_a_machine_elsewhere(text: str) -> None:
    assert SECRET.search(text) or ELSEWHERE.search(text)


@pytest.mark.parametrize("words", page_commands(), ids=" ".join)
def test_every_command_of_the_page_is_one_the_program_takes(words: list[str]) -> None:
    parsed(words)


def test_the_page_shows_how_to_back_up_restore_and_verify() -> None:
    assert {"backup", "restore", "audit", "users"} <= {words[0] for words in page_commands()}


def test_the_script_of_the_database_is_one_a_shell_can_read() -> None:
    assert subprocess.run(["sh", "-n", DATABASE], check=False).returncode == 0


def test_the_unit_writes_to_its_own_folder_only_and_reaches_this_machine_only() -> None:
    service = dict(unit()["Service"])
    assert {name: service.get(name) for name in BARRIERS} == BARRIERS
    assert "ReadWritePaths" not in service


def test_systemd_finds_no_fault_in_the_unit_and_little_that_it_could_reach(tmp_path: Path) -> None:
    program = find_program("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not on this machine")
    here = tmp_path / UNIT.name
    here.write_text(
        re.sub(r"^ExecStart=\S+", f"ExecStart={sys.executable}", UNIT.read_text("utf-8"), flags=re.MULTILINE)
    )
    verified = subprocess.run([program, "verify", here], capture_output=True, text=True, check=False)
    assert (verified.returncode, verified.stderr) == (0, "")
    judge: list[str | Path] = [program, "security", "--offline=true", f"--threshold={MOST_EXPOSED}", here]
    judged = subprocess.run(judge, capture_output=True, text=True, check=False)
    assert judged.returncode == 0, judged.stdout[-200:]


def test_docker_reads_the_compose_file_as_we_do() -> None:
    docker = find_program("docker")
    if docker is None or subprocess.run([docker, "compose", "version"], capture_output=True, check=False).returncode:
        pytest.skip("docker compose is not on this machine")
    command: list[str | Path] = [docker, "compose", "--file", COMPOSE, "config", "--format", "json"]
    environment = {"PATH": "/usr/bin:/bin", "VRBOT_MODEL": "first"}
    read = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    application = json.loads(read.stdout)["services"]["application"]
    assert parsed(application["command"])["run"] == started_by_compose()["run"]
    assert [port["host_ip"] for port in application["ports"]] == ["127.0.0.1"]
