"""What can go wrong at the desk; each kind is one answer of an interface (the status in its docstring)."""

from __future__ import annotations

from vrbot.errors import UsageError, VRBotError


class InvalidInputError(UsageError):
    """A value that cannot be stored as it was given (422)."""


class NotFoundError(VRBotError):
    """There is no such thing, or it is not the caller's to see (404)."""


class ConflictError(VRBotError):
    """It was done already, in another way; nothing was changed (409)."""


class RefusedError(VRBotError):
    """The caller may not do this, or nobody may at present (403)."""


class ReasonNeededError(VRBotError):
    """A check says stop: the physician may go on, but only with a reason (422); `findings` say what was found."""

    def __init__(self, message: str, findings: tuple[dict[str, object], ...] = ()) -> None:
        super().__init__(message)
        self.findings = findings


class SignInError(VRBotError):
    """Name and password do not belong together, or the account is disabled (401)."""


class UnavailableError(VRBotError):
    """The database cannot be reached or is too busy (503).

    Whether a commit got through as the connection broke is not known; to try again is safe: nothing is done twice.
    """


class BusyError(UnavailableError):
    """Too many wait already (429); nothing was done, and to try again after `retry_after` seconds is safe."""

    def __init__(self, message: str, retry_after: int = 1) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class LateError(UnavailableError):
    """It took longer than the deadline allows (503); to try again is safe."""
