"""Pickles of lists, dicts and plain values, read without ever giving the file a class, a function or a say.

Two independent guards: the instructions are checked against a short list of allowed ones before anything is loaded, and
the unpickler admits no global at all. Tuples are not allowed either, since hashing a deeply nested one (as a dict key)
overruns the interpreter's stack; nor are memo slots out of sequence, which reserve memory in proportion to the slot.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from typing import Any, NoReturn

from vrbot.dialogue.sources import Place, shown

_ALLOWED = {
    *("PROTO", "FRAME", "STOP", "MARK", "POP", "POP_MARK", "DUP"),
    *("NONE", "NEWTRUE", "NEWFALSE", "INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4"),
    *("FLOAT", "BINFLOAT", "STRING", "BINSTRING", "SHORT_BINSTRING"),
    *("UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"),
    *("EMPTY_LIST", "LIST", "APPEND", "APPENDS", "EMPTY_DICT", "DICT", "SETITEM", "SETITEMS"),
    *("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE", "GET", "BINGET", "LONG_BINGET"),
}
_PUTS = {"PUT", "BINPUT", "LONG_BINPUT"}
_FETCH = "fetch the file again from its publisher, and open it with nothing else"


def load_plain_pickle(data: bytes, place: Place) -> Any:
    """The value of a pickle of lists, dicts, strings, numbers, true, false and none; DataError for any other pickle."""
    _check_instructions(data, place)
    try:
        return _PlainUnpickler(io.BytesIO(data), encoding="utf-8").load()
    except Exception as error:  # a damaged pickle can fail in any way, since it is a program
        raise place.error(f"is a damaged pickle ({type(error).__name__})", _FETCH) from None


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError("a pickle of dialogues needs no classes")

    def persistent_load(self, pid: Any) -> NoReturn:
        raise pickle.UnpicklingError("a pickle of dialogues refers to nothing outside itself")


def _check_instructions(data: bytes, place: Place) -> None:
    """Walk through the instructions without obeying them."""
    last = -1
    try:
        for count, (instruction, argument, position) in enumerate(pickletools.genops(data)):
            name = instruction.name
            if name not in _ALLOWED:
                problem = f"the pickle has the instruction {name} at byte {position}, which plain data does not need"
                raise place.error(problem, f"do not load this file with pickle; {_FETCH}")
            if name in _PUTS and not (isinstance(argument, int) and 0 <= argument <= count):
                raise place.error(f"the pickle reserves the memo slot {shown(argument)}", _FETCH)
            last = position or 0
    except ValueError:
        raise place.error("is not a complete pickle", _FETCH) from None
    if last != len(data) - 1:
        raise place.error(f"goes on after the pickle's end at byte {last}", _FETCH)
