"""The command line: exit codes, one-line errors, and help that costs nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from vrbot.cli.main import VERBS, load_verb, run, summary_of

INVENTED = "tests.cli.invented_verbs"
NAMES = ("broken_data", "bad_setting", "fault", "interrupted", "flood", "group")
REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def invented_verbs(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.setitem(VERBS, name.replace("_", "-"), f"{INVENTED}:{name}")


def in_a_new_process(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=REPOSITORY, check=False)


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_every_verb_has_a_summary_and_a_help_with_an_example(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert summary_of(VERBS[verb]).endswith(".")
    assert run([verb, "--help"]) == 0
    assert f"vrbot {verb}" in capsys.readouterr().out.split("Example", 1)[1]


def test_help_lists_every_verb_and_imports_neither_torch_nor_a_verb() -> None:
    program = (
        "import sys; from vrbot.cli.main import run; code = run(['--help']); "
        "heavy = {'torch', 'numpy', 'vrbot.cli.doctor'} & set(sys.modules); sys.exit(code or len(heavy))"
    )
    done = in_a_new_process(program)
    assert done.returncode == 0
    assert all(f"\n  {verb} " in done.stdout for verb in VERBS if verb.replace("-", "_") not in NAMES)


def test_no_verb_at_all_is_wrong_use_but_shows_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 2
    assert "Usage: vrbot" in capsys.readouterr().out


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("vrbot 0.")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["docter"], 2, "Did you mean 'doctor'"),
        (["doctor", "--nonsense"], 2, "vrbot doctor --help"),
        (["broken-data"], 1, "chats.jsonl:7: patient: is a number"),
        (["bad-setting"], 2, "policy.hops must be at least 1, got 0"),
        (["fault"], 1, "ZeroDivisionError: division by zero (run again with --debug"),
    ],
)
def test_an_error_is_one_line_with_the_way_out(
    arguments: list[str], code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == code
    seen = capsys.readouterr()
    assert seen.out == ""
    assert seen.err.count("\n") == 1
    assert seen.err.startswith("vrbot: error: ")
    assert words in seen.err


@pytest.mark.parametrize("arguments", [["fault", "--debug"], ["--debug", "fault"], ["broken-data", "--debug"]])
def test_debug_shows_the_traceback_wherever_it_stands(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 1
    seen = capsys.readouterr().err
    assert "Traceback" in seen
    assert "--debug" not in seen.splitlines()[-1]


def test_an_interrupt_ends_quietly_with_130(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["interrupted"]) == 130
    assert capsys.readouterr().err == ""


def test_a_group_of_one_verb_keeps_its_inner_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["group", "inner", "--times", "2"]) == 0
    assert capsys.readouterr().out == "inner inner \n"
    assert load_verb("group", f"{INVENTED}:group").name == "group"


def test_a_reader_that_leaves_early_hears_no_complaint() -> None:
    program = (
        "import sys; from vrbot.cli import main; "
        f"main.VERBS['flood'] = '{INVENTED}:flood'; sys.argv = ['vrbot', 'flood']; main.main()"
    )
    command = f'"{sys.executable}" -c "{program}" | head -n 1'
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=REPOSITORY, check=False)
    assert (done.stdout, done.stderr) == ("water\n", "")
