"""The `vrbot` command: the table of verbs, how one is loaded, and what becomes of an error."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import logging
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group

from vrbot.cli.printing import note, say
from vrbot.errors import VRBotError

VERBS = {
    "simulate": "vrbot.cli.simulate:simulate",
    "deidentify": "vrbot.cli.deidentify:deidentify",
    "prepare": "vrbot.cli.prepare:prepare",
    "train": "vrbot.cli.train:train",
    "evaluate": "vrbot.cli.evaluate:evaluate",
    "compare": "vrbot.cli.compare:compare",
    "humaneval": "vrbot.cli.humaneval:humaneval",
    "experiment": "vrbot.cli.experiment:experiment",
    "probe": "vrbot.cli.probe:probe",
    "explain": "vrbot.cli.explain:explain",
    "annotate": "vrbot.cli.annotate:annotate",
    "bench": "vrbot.cli.bench:bench",
    "export": "vrbot.cli.export:export",
    "chat": "vrbot.cli.chat:chat",
    "demo": "vrbot.cli.demo:demo",
    "models": "vrbot.cli.models:models",
    "serve": "vrbot.cli.serve:serve",
    "users": "vrbot.cli.users:users",
    "audit": "vrbot.cli.audit:audit",
    "backup": "vrbot.cli.backup:backup",
    "restore": "vrbot.cli.backup:restore",
    "doctor": "vrbot.cli.doctor:doctor",
}
"""Verb -> `module:name` of a function, or of a `typer.Typer` whose commands are the verb's own verbs."""

FAILED, WRONG_USE, INTERRUPTED = 1, 2, 130
HELP_OPTIONS = {"help_option_names": ["-h", "--help"]}


class LazyVerbs(TyperGroup):
    """The verbs by name and summary; a verb's module is imported only when the verb is called.

    So `vrbot --help` does not wait for the imports of every verb.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, target in VERBS.items():
            self.add_command(TyperCommand(name, help=summary_of(target)))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Replace the placeholder of a known verb by the real command."""
        name, _, rest = super().resolve_command(ctx, args)
        return name, None if name is None else load_verb(name, VERBS[name]), rest


def summary_of(target: str) -> str:
    """The first docstring line of a verb (of its module, if the verb is a group), read without importing it."""
    module_name, _, attribute = target.partition(":")
    found = importlib.util.find_spec(module_name)
    if found is None or found.origin is None:
        return "(not installed)"
    tree = ast.parse(Path(found.origin).read_text(encoding="utf-8"))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == attribute]
    text = ast.get_docstring(functions[0] if functions else tree)
    return (text or "").partition("\n")[0]


def load_verb(name: str, target: str) -> Any:
    """The command behind `module:name`: a function becomes one command, a `typer.Typer` a group."""
    module_name, _, attribute = target.partition(":")
    value = getattr(importlib.import_module(module_name), attribute)
    if isinstance(value, typer.Typer):
        value.rich_markup_mode = None
        command: Any = get_group(value)
    else:
        app = typer.Typer(add_completion=False, rich_markup_mode=None)
        app.command(name, context_settings=HELP_OPTIONS)(value)
        command = get_command(app)
    command.name = name
    return command


def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks and debug messages (any verb).")] = False,
) -> None:
    """Medical dialogue with patient states, physician actions and reasons. Start with: vrbot VERB --help"""
    del debug  # taken out of the arguments by `run`, so that it may stand anywhere; declared here for --help
    if version:
        from importlib.metadata import version as installed_version

        say(f"vrbot {installed_version('vrbot')}")
        raise typer.Exit(0)
    if context.invoked_subcommand is None:
        say(context.get_help())
        raise typer.Exit(WRONG_USE)


def build_command() -> Any:
    """The whole command line as one command object."""
    app = typer.Typer(
        cls=LazyVerbs,
        add_completion=False,
        rich_markup_mode=None,
        invoke_without_command=True,
        context_settings=HELP_OPTIONS,
    )
    app.callback()(root)
    return get_command(app)


def run(arguments: Sequence[str]) -> int:
    """Run one command and give its exit code: 0 good, 1 failed, 2 wrong use, 130 interrupted."""
    os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")  # all but tiles: see `nets.prepared`
    debug = "--debug" in arguments
    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("vrbot").setLevel(logging.DEBUG if debug else logging.WARNING)
    rest = [argument for argument in arguments if argument != "--debug"]
    try:
        code = build_command().main(rest, prog_name="vrbot", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except BrokenPipeError:
        _stop_writing()
        return FAILED
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except typer.TyperException as error:
        _complain(error.format_message() + _where_to_look(error))
        return error.exit_code
    except VRBotError as error:
        _show_traceback(debug)
        _complain(str(error))
        return error.exit_code
    except Exception as error:
        _show_traceback(debug)
        hint = "" if debug else " (run again with --debug to see where)"
        _complain(f"{type(error).__name__}: {error}{hint}")
        return FAILED


def main() -> None:
    """Entry point of the `vrbot` program."""
    # Two threads that spin while they wait slow each other down; this must be set before torch is loaded.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    code = run(sys.argv[1:])
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _stop_writing()
    sys.exit(code)


def _where_to_look(error: typer.TyperException) -> str:
    context = getattr(error, "ctx", None)
    return "" if context is None else f" (see: {context.command_path} --help)"


def _complain(text: str) -> None:
    note("vrbot: error: " + " ".join(text.splitlines()))


def _show_traceback(debug: bool) -> None:
    if debug:
        note(traceback.format_exc().rstrip())


def _stop_writing() -> None:
    """Point standard output at nothing: its reader has gone, and the interpreter flushes it once more at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
