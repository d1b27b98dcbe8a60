"""The kill switch for drafts: a flag on disk that outlives the process, with who, when and why."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from vrbot.errors import UsageError
from vrbot.files import atomic_write


@dataclass(frozen=True)
class SwitchState:
    """`on` means: no drafts. `when` is ISO 8601."""

    on: bool
    reason: str = ""
    who: str = ""
    when: str = ""


class KillSwitch:
    """The switch kept in the file at `path`; without the file it is off, with a damaged one it is on."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def state(self) -> SwitchState:
        """What the file says now; it is read anew each time, so every process sees a change at once."""
        try:
            content = json.loads(self.path.read_text(encoding="utf-8"))
            state = SwitchState(content["on"], content["reason"], content["who"], content["when"])
        except FileNotFoundError:
            return SwitchState(on=False)
        except (OSError, ValueError, KeyError, TypeError) as error:
            return SwitchState(True, f"{self.path} cannot be read ({error}): switch it off or on again to renew it")
        if not isinstance(state.on, bool):
            return SwitchState(True, f"{self.path}: on is {state.on!r}: switch it off or on again to renew it")
        return state

    def switch_on(self, reason: str, who: str, when: datetime) -> SwitchState:
        """Refuse drafts from now on."""
        return self._write(True, reason, who, when)

    def switch_off(self, reason: str, who: str, when: datetime) -> SwitchState:
        """Allow drafts again."""
        return self._write(False, reason, who, when)

    def _write(self, on: bool, reason: str, who: str, when: datetime) -> SwitchState:
        if not reason.strip() or not who.strip():
            raise UsageError(f"the kill switch needs a reason and a name: got reason={reason!r}, who={who!r}")
        state = SwitchState(on, reason.strip(), who.strip(), when.isoformat())
        with atomic_write(self.path) as file:
            json.dump(asdict(state), file, ensure_ascii=False)
        return state
