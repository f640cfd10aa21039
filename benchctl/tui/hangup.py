"""Ends the screens when their terminal is gone.

The kernel sends SIGHUP to those whose controlling terminal hangs up. A program that was started
without one (``setsid``, some containers), or with the signal ignored (``nohup``), is not told.
Textual's input thread then reads the end of the file again and again, with all of a core.
"""

from __future__ import annotations

import os
import select
import signal
import threading


def end_with_terminal(descriptor: int) -> None:
    """End this process when the terminal behind a descriptor hangs up."""
    threading.Thread(target=_watch, args=(descriptor,), name="hangup", daemon=True).start()


def _watch(descriptor: int) -> None:
    terminal = select.poll()
    terminal.register(descriptor, 0)  # a hang-up is always reported (poll(2))
    if any(event & select.POLLHUP for _, event in terminal.poll()):
        ignored = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
        os.kill(os.getpid(), signal.SIGTERM if ignored else signal.SIGHUP)
