"""What a terminal shows beside the text: its title, and the progress in its tab or taskbar."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO

from benchctl.visible import visible

_END = "\x1b\\"  # ST; some terminals take no BEL here
# The terminal's own title is saved and restored (xterm's XTWINOPS, 22 and 23).
_SAVE_TITLE, _RESTORE_TITLE = "\x1b[22;2t", "\x1b[23;2t"
_NO_PROGRESS = f"\x1b]9;4;0;{_END}"
# The first versions that show it: VTE 0.79, Konsole 26.04, iTerm2 3.6.6.
_VTE, _KONSOLE, _ITERM = 7900, 260400, (3, 6, 6)


def has_title(environment: Mapping[str, str]) -> bool:
    """Return whether a terminal has a title; the console of Linux has none."""
    return environment.get("TERM", "dumb") not in ("dumb", "linux")


def shows_progress(environment: Mapping[str, str]) -> bool:
    """Return whether a terminal takes OSC 9;4 as progress; others show it as a message.

    From ConEmu (conemu.github.io/en/AnsiEscapeCodes.html, "ConEmu specific OSC"). Within a
    multiplexer, the variables of the outer terminal say nothing.
    """
    if "TMUX" in environment or "STY" in environment:
        return False
    program = environment.get("TERM_PROGRAM", "")
    return (
        "WT_SESSION" in environment
        or environment.get("ConEmuANSI") == "ON"
        or program in ("WezTerm", "ghostty")
        or (program == "iTerm.app" and _version(environment, "TERM_PROGRAM_VERSION") >= _ITERM)
        or _version(environment, "VTE_VERSION") >= (_VTE,)
        or _version(environment, "KONSOLE_VERSION") >= (_KONSOLE,)
    )


def _version(environment: Mapping[str, str], name: str) -> tuple[int, ...]:
    parts = environment.get(name, "").split(".")
    return tuple(int(part) for part in parts) if all(map(str.isdecimal, parts)) else ()


class TerminalStatus:
    """The title and the progress of a terminal while something runs."""

    def __init__(self, stream: IO[str], environment: Mapping[str, str]) -> None:
        self._stream = stream
        self._title = has_title(environment)
        self._progress = shows_progress(environment)
        self._last = ""
        if self._title:
            self._write(_SAVE_TITLE)

    def show(self, title: str, done: float) -> None:
        """Show a title, and how much is done, from 0 to 1; writes only what has changed."""
        text = f"\x1b]2;{visible(title)}{_END}" if self._title else ""
        if self._progress:
            text += f"\x1b]9;4;1;{int(done * 100)}{_END}"
        if text != self._last:
            self._last = text
            self._write(text)

    def close(self) -> None:
        """Restore the title, and end the progress."""
        self._write((_RESTORE_TITLE if self._title else "") + _NO_PROGRESS * self._progress)

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
