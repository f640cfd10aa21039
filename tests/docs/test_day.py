"""docs/day.md: the whole day, command by command, as it is printed there."""

import os
import re
import signal
import subprocess
import sys

import pytest
from docs.documents import blocks_of, commands_of, pattern_of, shape_of, write_files

DOCUMENT = "day.md"
NAME = re.compile(r"\d{8}-\d{6}-([0-9a-f]{6})")
# The loopback addresses of the page's servers. They serve at the tool's own port, which another run
# of this test may have there: each process has addresses of its own.
SERVERS = re.compile(r"127\.0\.0(?=\.1\d\b)")
OWN = f"127.{1 + os.getpid() // 256 % 254}.{os.getpid() % 256}"
# Runs are as short here as they can be; the commands are those of the page.
SHORT = ('duration = "2s"', 'duration = "200ms"')

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="127.0.0.10 is loopback there")


class Day:
    """The terminals of a day: one of the client, and one of each server."""

    def __init__(self, shell):
        self._shell = shell
        self._servers = []
        self._names = {}
        """The names of runs on the page, and what they are called today."""

    def type(self, command, expected):
        """Type one command, and compare what it prints."""
        command, expected = SERVERS.sub(OWN, command), [SERVERS.sub(OWN, one) for one in expected]
        for printed, real in self._names.items():
            command = command.replace(printed, real)
        if command.startswith("benchctl serve "):
            output = self._serve(command, len(expected))
        else:
            ((output, _),) = self._shell.run([command])
        assert re.fullmatch(pattern_of(expected), shape_of(output)), f"$ {command}\n{output}"
        for printed, real in zip(
            NAME.finditer("\n".join(expected)), NAME.finditer(output), strict=False
        ):
            self._names.setdefault(printed[0], real[0])
            self._names.setdefault(printed[1], real[1])

    def _serve(self, command, lines):
        server = subprocess.Popen(
            [sys.executable, "-m", *command.split()], stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True, env={**os.environ, "LC_ALL": "C"},
        )  # fmt: skip
        self._servers.append(server)
        return "".join(server.stdout.readline() for _ in range(lines))

    def end(self):
        """Press Ctrl-C on each server; returns how they ended."""
        for server in self._servers:
            server.send_signal(signal.SIGINT)
            server.communicate()
        return [server.returncode for server in self._servers]


def test_the_day_goes_as_it_is_printed(tmp_path, shell_in):
    write_files(DOCUMENT, tmp_path)
    profile = tmp_path / "day.toml"
    text = profile.read_text()
    assert SHORT[0] in text
    profile.write_text(SERVERS.sub(OWN, text))
    day = Day(shell_in(tmp_path))
    try:
        for block in blocks_of(DOCUMENT, "console"):
            for command, expected in commands_of(block):
                day.type(command, expected)
                if command.startswith("benchctl plan"):
                    profile.write_text(profile.read_text().replace(*SHORT))
    finally:
        ends = day.end()
    assert ends == [0, 0]
    assert "berlin" in (tmp_path / "free.md").read_text()
    for file in ("report.html", "throughput.svg"):
        assert "berlin" in (tmp_path / file).read_text()
