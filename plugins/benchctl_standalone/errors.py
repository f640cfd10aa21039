"""The errors, as reported to people and programs."""

from __future__ import annotations


class Problem(Exception):  # noqa: N818 - it is also a value that is sent and printed
    """A measurement that is impossible or failed.

    ``kind`` is one of ``busy``, ``unreachable``, ``refused``, ``parameter``, ``peer``, ``tool``:
    who has to act. The text goes over the wire and into ``--events``.
    """

    KINDS = ("busy", "unreachable", "refused", "parameter", "peer", "tool")

    def __init__(self, kind: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.hint = hint


def describe_os_error(error: OSError) -> str:
    """Return the system's text for an error, without its number."""
    return error.strerror or str(error) or type(error).__name__
