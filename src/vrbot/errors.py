"""The few exceptions a user meets; each message names the value and the way out."""

from __future__ import annotations

from pathlib import Path
from typing import Any


class VRBotError(Exception):
    """Something the user can put right; the command line prints it as one line and exits with `exit_code`."""

    exit_code = 1


class UsageError(VRBotError):
    """The command or the settings were wrong before any work began."""

    exit_code = 2


class ConfigError(UsageError):
    """A setting has a value it cannot have."""


class DataError(VRBotError):
    """Input that cannot be read, as `file:line: field: problem: fix`."""

    def __init__(self, file: str | Path, line: int | None, field: str, problem: str, fix: str) -> None:
        self.file, self.line, self.field, self.problem, self.fix = str(file), line, field, problem, fix
        place = self.file if line is None else f"{self.file}:{line}"
        super().__init__(f"{place}: {field}: {problem}: {fix}")

    def __reduce__(self) -> tuple[Any, ...]:  # so that it can come back from a worker process
        return type(self), (self.file, self.line, self.field, self.problem, self.fix)


class IntegrityError(VRBotError):
    """A stored file is not what its manifest says it is."""
