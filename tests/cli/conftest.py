import os
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import COMMAND_S

TOY = Path(__file__).with_name("toy.py")


class Benchctl:
    """Runs the real command in an empty directory, with a store and the toy backend of its own.

    What is only called and read is a fork of the ``server``, if there is one.
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

    def start(self, *args, **options):
        return subprocess.Popen(
            [*self.words, *args],
            cwd=self.directory,
            env=self.environment,
            text=True,
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options},
        )

    def __call__(self, *args, stdin=""):
        if self.server is not None:
            argv = ["benchctl", *map(str, args)]
            return self.server.run(argv, self.directory, self.environment, stdin=stdin)
        process = self.start(*args, stdin=subprocess.PIPE)
        stdout, stderr = process.communicate(stdin, timeout=COMMAND_S)
        return subprocess.CompletedProcess(args, process.returncode, stdout, stderr)


@pytest.fixture
def benchctl(tmp_path, fork_server):
    return Benchctl(tmp_path, server=fork_server)
