"""Every command line that documents, help texts and pages of the console show is one that the program takes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from vrbot.cli.main import VERBS, load_verb
from vrbot.serving.console import experiments_page, rating_page

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
ENDS = {"|", "||", "&", "&&", ";", ">", ">>", "<", "2>"}


def shown(text: str) -> Iterator[list[str]]:
    """The words after `vrbot` of every line that begins with it, up to a comment, a pipe or a redirection."""
    for line in re.sub(r"\\\n\s*", " ", text).splitlines():
        match = re.match(r"\s*(?:\S*/|sudo (?:-u \w+ )?\S*)?vrbot +([a-z].*)", line)
        if match and "..." not in line and "…" not in line:
            words = shlex.split(match[1], comments=True)
            yield words[: next((place for place, word in enumerate(words) if word in ENDS), len(words))]


def in_blocks(document: Path) -> str:
    return "\n".join(re.findall(r"^```\w*\n(.*?)^```", document.read_text("utf-8"), re.MULTILINE | re.DOTALL))


def parse(words: list[str]) -> None:
    """Reads the options and arguments of a command, and does nothing; an exception where they are wrong."""
    verb, *rest = words
    command = load_verb(verb, VERBS[verb])
    context = command.make_context(verb, rest)
    while hasattr(command, "resolve_command"):
        name, command, rest = command.resolve_command(context, [*context._protected_args, *context.args])
        context = command.make_context(name, rest, parent=context)


def helps() -> dict[str, str]:
    found = {}
    for verb, target in VERBS.items():
        command = load_verb(verb, target)
        found[verb] = command.help or ""
        for name, inner in getattr(command, "commands", {}).items():
            found[f"{verb} {name}"] = inner.help or ""
    return found


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_in_documents_can_be_called(document: Path) -> None:
    for words in shown(in_blocks(document)):
        parse(words)


def test_commands_are_found_where_they_are_shown() -> None:
    assert len(list(shown(in_blocks(ROOT / "README.md")))) > 20
    assert all(any(shown(text)) for name, text in helps().items() if name in VERBS)


def test_commands_in_help_texts_can_be_called() -> None:
    for text in helps().values():
        for words in shown(text):
            parse(words)


@pytest.mark.parametrize("text", [experiments_page.RUN, rating_page.DRAW])
def test_commands_that_pages_show_can_be_called(text: str) -> None:
    assert len(list(shown(text))) == 2
    for words in shown(text):
        parse(words)


@pytest.mark.parametrize(
    "line", ["vrbot serve --study study", "vrbot chat runs/a --tap-k 3", "vrbot experiment report"]
)
def test_a_command_that_lacks_an_argument_or_has_an_unknown_option_is_found_out(line: str) -> None:
    (words,) = shown(line)
    with pytest.raises(Exception, match=r"Missing parameter|No such option"):
        parse(words)
