"""Reads keys from the terminal as soon as each is known.

Escape is also how the sequences of other keys begin, so a reader waits for what follows it. Textual
waits 100 ms, and looks every 100 ms whether they have passed (version 8.2).
"""

from __future__ import annotations

import os
import select
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterator

from textual import constants
from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver
from textual.message import Message

# A sequence arrives at once, or in parts on a slow line; nobody notices so short a wait.
ESCAPE_S = 0.025
# A key interrupts it: so long the end of the program may take.
IDLE_S = 0.1
# A look at exactly the end of a wait may come too early.
MARGIN_S = 0.001
MOST_BYTES = 4096


class Terminal(LinuxDriver):
    """The terminal; ``ESCDELAY`` of the environment, in ms, is how long Escape waits."""

    def run_input_thread(self) -> None:
        """Hand on keys until the screens end."""
        if "ESCDELAY" not in os.environ:
            vars(constants)["ESCAPE_DELAY"] = ESCAPE_S
        decode = getincrementaldecoder("utf-8")(errors="replace").decode

        def read(wait_s: float) -> str | None:
            if self.exit_event.is_set():
                return None
            ready, _, _ = select.select([self.fileno], [], [], wait_s)
            return decode(os.read(self.fileno, MOST_BYTES)) if ready else ""

        for message in messages(read, XTermParser(self._debug)):
            self.process_message(message)


def messages(read: Callable[[float], str | None], parser: XTermParser) -> Iterator[Message]:
    """Yield what is typed; ``read`` waits for so many seconds at most, and ends with None."""
    wait_s = IDLE_S
    while (text := read(wait_s)) is not None:
        yield from parser.feed(text) if text else parser.tick()
        wait_s = constants.ESCAPE_DELAY + MARGIN_S if text else IDLE_S
