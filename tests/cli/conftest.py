import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from waiting import COMMAND_S

TOY = Path(__file__).with_name("toy.py")


class Benchctl:
    """Runs the real command in an empty directory, with a store and the toy backend of its own.

    It is a fork of the ``server``, if there is one.
    """

    def __init__(self, directory, words=(sys.executable, "-m", "benchctl"), server=None):
        self.directory = directory
        self.words = words
        self.server = server
        self.store = directory / "runs.sqlite"
        self.environment = {
            **os.environ,
            "BENCHCTL_STORE": str(self.store),
            "BENCHCTL_PLUGINS": str(TOY),
            "COLUMNS": "200",
        }

    def profile(self, text, name="p.toml"):
        (self.directory / name).write_text(text)
        return name

    def start(self, *args, **streams):
        if self.server is None:
            return self.start_anew(*args, **streams)
        return self.server.start(self._argv(args), self.directory, self.environment, **streams)

    def start_anew(self, *args, **options):
        """Start it with an interpreter of its own, and its runner, too.

        Only so are its streams and signals set up anew, and is the runner seen in /proc.
        """
        return subprocess.Popen(
            [*self.words, *args],
            cwd=self.directory,
            env=self.environment,
            text=True,
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options},
        )

    def at_a_terminal(self, *args, typed="", **streams):
        """Run it at a terminal, where ``typed`` waits; returns its exit code and what is there.

        What is in ``streams`` does not go there.
        """
        ours, theirs = pty.openpty()
        os.write(ours, typed.encode())
        process = self.start(
            *args, **{"stdin": theirs, "stdout": theirs, "stderr": theirs, **streams}
        )
        os.close(theirs)
        said = b""
        with suppress(OSError):  # the terminal's way to say that the other side is closed
            while part := os.read(ours, 65536):
                said += part
        os.close(ours)
        process.communicate(timeout=COMMAND_S)
        return process.returncode, said.decode().replace("\r\n", "\n")

    def __call__(self, *args, stdin=""):
        if self.server is not None:
            return self.server.run(
                self._argv(args), self.directory, self.environment, stdin=stdin
            )  # fmt: skip
        process = self.start(*args, stdin=subprocess.PIPE)
        stdout, stderr = process.communicate(stdin, timeout=COMMAND_S)
        return subprocess.CompletedProcess(args, process.returncode, stdout, stderr)

    @staticmethod
    def _argv(args):
        return ["benchctl", *map(str, args)]


@pytest.fixture
def benchctl(tmp_path, fork_server):
    return Benchctl(tmp_path, server=fork_server)
