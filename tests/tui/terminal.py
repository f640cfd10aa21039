"""A real terminal for the screens: tmux, with a server of its own."""

import os
import shlex
import subprocess
import sys

from waiting import wait_until


class Terminal:
    """A terminal of tmux, with a shell in it."""

    def __init__(self, socket, directory, size=(100, 30)):
        self._socket = socket
        columns, rows = map(str, size)
        self.tmux("new-session", "-d", "-x", columns, "-y", rows, "-c", str(directory), "sh")

    def tmux(self, *arguments):
        argv = ["tmux", "-S", str(self._socket), "-f", "/dev/null", *arguments]
        # Python's readline sets LINES and COLUMNS behind os.environ, for all that it starts.
        env = {**os.environ}
        return subprocess.run(argv, capture_output=True, text=True, check=True, env=env).stdout

    def run(self, *command):
        """Type a command."""
        self.type(shlex.join(command))
        self.press("Enter")

    def press(self, *keys):
        self.tmux("send-keys", *keys)

    def type(self, text):
        self.tmux("send-keys", "-l", text)

    def shown(self):
        return self.tmux("capture-pane", "-p")

    def until(self, holds):
        """Wait until something holds of what is shown, and return that."""
        seen = []

        def held():
            seen[:] = [self.shown()]
            return holds(seen[0])

        wait_until(held, self.shown)
        return seen[0]


def benchctl(*arguments):
    return [sys.executable, "-m", "benchctl", *arguments]
