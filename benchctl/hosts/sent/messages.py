"""What the runner and the agent of a host say to each other: every message, and what it may hold.

`ASKED` has the messages to an agent, `SAID` those of an agent, `ANSWERS` what the functions that it
is asked for return. Both ends write and read by these tables, so neither can send what the other
would not take. What comes is checked like a file from a stranger: types, ranges and sizes. Who
sends anything else is not listened to any further.

Both ends have this file: it is a part of the agent's text, so it needs Python 3.9 and the standard
library only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, Union

from benchctl.hosts.sent.frames import FrameReader, frame

# --- kinds of values --------------------------------------------------------------------------


def _refuse(value: Any, wanted: str) -> NoReturn:
    text = repr(value)
    raise ValueError(f"{text if len(text) <= 40 else text[:37] + '...'} is not {wanted}")


class Number:
    """A finite number within bounds."""

    def __init__(self, least: float, most: float) -> None:
        self._least, self._most = least, most

    def check(self, value: Any) -> None:
        """Raise ValueError for a value of another kind, as `check` of all kinds does."""
        # No comparison holds for NaN.
        if type(value) not in (int, float) or not self._least <= value <= self._most:
            _refuse(value, f"a number from {self._least:g} to {self._most:g}")


class Whole(Number):
    """An integer within bounds."""

    def check(self, value: Any) -> None:
        super().check(value)
        if type(value) is not int:
            _refuse(value, "an integer")


class Flag:
    """True or false."""

    def check(self, value: Any) -> None:
        if type(value) is not bool:
            _refuse(value, "true or false")


class Text:
    """Text of so many characters at most, which UTF-8 can write."""

    def __init__(self, most: int) -> None:
        self._most = most

    def check(self, value: Any) -> None:
        if type(value) is not str or len(value) > self._most:
            _refuse(value, f"a text of up to {self._most} characters")
        if _UNWRITABLE.search(value):
            _refuse(value, "text of Unicode")


_UNWRITABLE = re.compile("[\ud800-\udfff]")


class OneOf:
    """One of a few values."""

    def __init__(self, *values: Any) -> None:
        self._values = values

    def check(self, value: Any) -> None:
        if not any(value == allowed and type(value) is type(allowed) for allowed in self._values):
            _refuse(value, f"one of {', '.join(map(repr, self._values))}")


class Anything:
    """Any value of JSON; the size of its message bounds it."""

    def check(self, value: Any) -> None:
        """Take all."""


class Maybe:
    """A value of a kind, or none."""

    def __init__(self, kind: ValueKind) -> None:
        self._kind = kind

    def check(self, value: Any) -> None:
        if value is not None:
            self._kind.check(value)


class ListOf:
    """A list of values of one kind; ``least`` of them, up to ``most``."""

    def __init__(self, kind: ValueKind, most: int, least: int = 0) -> None:
        self._kind, self._most, self._least = kind, most, least

    def check(self, value: Any) -> None:
        if type(value) not in (list, tuple) or not self._least <= len(value) <= self._most:
            _refuse(value, f"a list of {self._least} to {self._most}")
        for item in value:
            self._kind.check(item)


class TableOf:
    """Values of one kind by name, up to ``most``."""

    def __init__(self, kind: ValueKind, most: int, name_most: int = 64) -> None:
        self._kind, self._most, self._name = kind, most, Text(name_most)

    def check(self, value: Any) -> None:
        if type(value) is not dict or len(value) > self._most:
            _refuse(value, f"a table of up to {self._most}")
        for name, entry in value.items():
            self._name.check(name)
            self._kind.check(entry)


class Record:
    """Values by name, each of a kind of its own; those that are ``optional`` may be missing."""

    def __init__(
        self, needed: Mapping[str, ValueKind], optional: Mapping[str, ValueKind] | None = None
    ) -> None:
        self._needed = needed
        self._known = {**needed, **(optional or {})}

    def check(self, value: Any) -> None:
        if type(value) is not dict:
            _refuse(value, "a table")
        for name in self._needed:
            if name not in value:
                raise ValueError(f"{name} is missing")
        for name, entry in value.items():
            if name not in self._known:
                raise ValueError(f"{name!r:.40} is not known")
            try:
                self._known[name].check(entry)
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None


class OrEmpty:
    """A table of a kind, or an empty one: what a system does not have."""

    def __init__(self, kind: ValueKind) -> None:
        self._kind = kind

    def check(self, value: Any) -> None:
        if value != {}:
            self._kind.check(value)


ValueKind = Union[  # noqa: UP007 (Python 3.9)
    Number, Flag, Text, OneOf, Anything, Maybe, ListOf, TableOf, Record, OrEmpty
]  # fmt: skip

# --- the messages -----------------------------------------------------------------------------

MOST_PIECE = 1 << 16
"""Of a command's output in one message, in bytes."""
_MOST_PROGRAM = 1 << 22
# Of Linux, for one word of a command (MAX_ARG_STRLEN in binfmts.h).
_MOST_WORD = 1 << 17

_NUMBER = Whole(1, 2**53)
# Until the year 2242: a host without a battery begins in 1970.
_TIME = Number(0.0, 2.0**33)
_PID = Whole(1, 2**22)  # PID_MAX_LIMIT in linux/threads.h
MOST_REASON = 4096
"""Of the words that say why, in characters."""
_NAME, _LINE, _REASON = Text(64), Text(1024), Text(MOST_REASON)
_COUNT = Whole(0, 2**64 - 1)
_SIGNALS = OneOf("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGKILL", "SIGUSR1", "SIGUSR2")


class Message(Record):
    """One kind of message: its fields, and how long a body it may have."""

    def __init__(
        self,
        needed: Mapping[str, ValueKind],
        optional: Mapping[str, ValueKind] | None = None,
        most_body: int = 0,
    ) -> None:
        super().__init__(needed, optional)
        self.most_body = most_body


ASKED: Mapping[str, Message] = {
    "ping": Message({"number": _NUMBER}),
    "program": Message({"name": _NAME}, most_body=_MOST_PROGRAM),
    "ask": Message(
        {"number": _NUMBER, "function": _NAME, "arguments": ListOf(Anything(), 64)},
        most_body=_MOST_PROGRAM,
    ),
    "lock": Message({"number": _NUMBER, "who": _LINE}),
    "unlock": Message({}),
    "start": Message(
        {
            "number": _NUMBER,
            "argv": ListOf(Maybe(Text(_MOST_WORD)), 4096, least=1),
            "env": TableOf(Text(_MOST_WORD), 1024, name_most=1024),
        },
        {"program": _NAME, "as_root": Flag()},
    ),
    "begin": Message({"number": _NUMBER}, {"at_s": _TIME}),
    "signal": Message({"number": _NUMBER, "name": _SIGNALS}),
}
"""The messages of the runner."""

SAID: Mapping[str, Message] = {
    "hello": Message(
        {"python": _NAME, "system": _NAME, "pid": _PID, "connection": ListOf(_NAME, 4)}
    ),
    "pong": Message({"number": _NUMBER, "time_s": _TIME}),
    "started": Message({"number": _NUMBER, "pid": _PID}),
    "refused": Message({"number": _NUMBER, "error": _REASON}),
    "output": Message(
        {"number": _NUMBER, "channel": OneOf(1, 2), "time_s": _TIME}, most_body=MOST_PIECE
    ),
    # The number of a signal, negative, or an exit code.
    "ended": Message({"number": _NUMBER, "code": Whole(-64, 255)}),
    "answer": Message({"number": _NUMBER}, {"value": Anything(), "error": _REASON}),
    "bye": Message({"why": _REASON}),
}
"""The messages of an agent. The value of an answer is one of `ANSWERS`."""

# More than a host of containers has.
_MOST_INTERFACES, _MOST_CORES = 8192, 4096
_INTERFACE = Record(
    {},
    {
        "mtu": Whole(0, 2**32),
        "state": _NAME,
        "speed_bps": Whole(1, 2**53),
        "driver": _NAME,
        "offloads": TableOf(Flag(), 64),
    },
)
_CLOCK = Record(
    {
        "synchronized": Flag(),
        "max_error_s": Number(-1e15, 1e15),
        "estimated_error_s": Number(-1e15, 1e15),
    }
)
ANSWERS: Mapping[str, ValueKind] = {
    "facts.collect": Record(
        {
            "hostname": _LINE,
            "system": _NAME,
            "kernel": _LINE,
            "machine": _NAME,
            "sysctls": TableOf(_LINE, 64),
            "interfaces": TableOf(_INTERFACE, _MOST_INTERFACES),
            "clock": OrEmpty(_CLOCK),
        },
        {
            "python": _NAME,
            "cpu": Record({"count": Maybe(Whole(1, 2**20)), "model": _LINE}),
            "load_1min": Number(0, 1e9),
        },
    ),
    "counters.read": OrEmpty(
        Record(
            {
                "time_s": Number(0, 1e12),
                "interfaces": TableOf(ListOf(_COUNT, 8, least=8), _MOST_INTERFACES),
                "counts": TableOf(_COUNT, 64),
                "cores": TableOf(ListOf(_COUNT, 4, least=4), _MOST_CORES),
            }
        )
    ),
    "ports.is_own": Flag(),
    "ports.first_free": ListOf(Whole(1, 65535), 1024),
    "recorder.why_not": _LINE,
    "tools.tool": Record(
        {"version": _LINE, "features": ListOf(_NAME, 1024)}, {"why_not": _REASON, "hint": _LINE}
    ),
    "lock": _LINE,
}
"""What each function returns that a host is asked for, by module and name."""

RECORDED: Mapping[str, Message] = {
    "recording": Message({}),
    "file": Message({}),
    "end": Message(
        {"packets": _COUNT, "dropped": _COUNT, "left_out": _COUNT}, {"message": _REASON}
    ),
    "error": Message({"message": _REASON}),
}
"""The lines of a recorder of packets, whose ``event`` is their name."""

KNOCKED: ValueKind = ListOf(
    Record({"tcp": _LINE, "udp": _LINE}, {"mtu_bytes": Whole(0, 2**32), "mtu_holds": Flag()}), 65536
)
"""What a host has found at the ports of another."""


def check_answer(function: str, value: Any) -> Any:
    """Return what a function returned. Raises ValueError if it may not be that."""
    try:
        ANSWERS[function].check(value)
    except ValueError as error:
        raise ValueError(f"{function}: {error}") from None
    return value


def check(
    table: Mapping[str, Message], name: Any, fields: Mapping[str, Any], length: int = 0
) -> None:
    """Raise ValueError if a message with a body of a length is none of a table."""
    message = table.get(name) if type(name) is str else None
    if message is None:
        _refuse(name, "a message")
    try:
        message.check(fields)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    if length > message.most_body:
        raise ValueError(f"{name}: a body of {length} bytes")


def packed(table: Mapping[str, Message], name: str, body: bytes = b"", /, **fields: Any) -> bytes:
    """Return a message of a table as it is sent. Raises ValueError if it does not fit there."""
    check(table, name, fields, len(body))
    return frame({"is": name, **fields}, body)


class MessageReader:
    """Takes bytes as they come, cut anywhere, and returns the messages that are whole."""

    def __init__(self, table: Mapping[str, Message]) -> None:
        self._table = table
        self._frames = FrameReader(max(message.most_body for message in table.values()))

    def feed(self, data: bytes) -> Sequence[tuple[str, dict[str, Any], bytes]]:
        """Return names, fields and bodies. Raises ValueError for what is no message of the table.

        Messages before one that is none are lost with it: who sends that is not believed any more.
        """
        found = []
        for fields, body in self._frames.feed(data):
            name = fields.pop("is", None)
            check(self._table, name, fields, len(body))
            found.append((name, fields, body))
        return found
