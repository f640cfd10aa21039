"""An hour's work that never leaves the screens: hour.txt is replayed in a real terminal."""

import re
import shlex
import socket
import subprocess
import sys
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from tui.terminal import Terminal, benchctl
from waiting import wait_until

from benchctl.run.status import Status
from benchctl.store.read import Reader

HOUR = Path(__file__).with_name("hour.txt")
# An editor that adds what is typed to the end of a file, up to ctrl+d, and leaves a clear terminal.
EDITOR = """sh -c 'echo editing "$0"; cat >> "$0"; clear'"""


class Hour:
    """What the lines of the script mean."""

    def __init__(self, terminal, directory, port, stack):
        self.terminal = terminal
        self.directory = directory
        self.port = port
        self._stack = stack

    def play(self, script):
        for number, line in enumerate(script.splitlines(), start=1):
            if not line or line.startswith("#"):
                continue
            verb, _, what = line.replace("{port}", str(self.port)).partition(" ")
            try:
                getattr(self, f"do_{verb}")(what)
            except AssertionError as error:
                raise AssertionError(f"{HOUR.name}:{number}: {line}\n{error}") from None

    def do_press(self, keys):
        self.terminal.press(*keys.split())

    def do_type(self, text):
        self.terminal.type(text)

    def do_see(self, words):
        self.terminal.until(pattern(words).search)

    def do_gone(self, words):
        self.terminal.until(lambda text: not pattern(words).search(text))

    def do_file(self, what):
        """Wait for a file whose name matches, and has the words."""
        name, _, words = what.partition(" has ")

        def found():
            return any(words in path.read_text() for path in self.directory.glob(name))

        wait_until(found, lambda: sorted(path.name for path in self.directory.iterdir()))

    def do_copied(self, words):
        wait_until(lambda: words in self.terminal.tmux("list-buffers"), self.terminal.shown)

    def do_elsewhere(self, command):
        """Start a server that belongs to somebody else, and wait until it listens."""
        argv = [sys.executable, "-m", *shlex.split(command)]
        server = self._stack.enter_context(subprocess.Popen(argv, stdout=subprocess.DEVNULL))
        self._stack.callback(server.terminate)
        wait_until(lambda: listens(self.port), lambda: f"server {server.poll()}")


def pattern(words):
    """Return what finds words on one line, with anything where they have an ellipsis."""
    return re.compile(".*".join(re.escape(part.strip()) for part in words.split("…")))


def listens(port):
    with closing(socket.socket()) as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0


def commands():
    """Return the command lines of all processes."""
    told = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            told.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue  # It has ended.
    return told


@pytest.mark.tool("tmux")
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_an_hour_of_work_on_the_screens(tmp_path, monkeypatch, port):
    directory = tmp_path / "work"
    directory.mkdir()
    store = tmp_path / "runs.sqlite"
    for name in ("CONFIG", "DATA", "STATE", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    monkeypatch.delenv("BENCHCTL_SETTINGS")
    monkeypatch.setenv("BENCHCTL_STORE", str(store))
    monkeypatch.setenv("PS1", "$ ")
    monkeypatch.setenv("EDITOR", EDITOR)
    monkeypatch.delenv("VISUAL", raising=False)
    with ExitStack() as stack:
        # The smallest size at which all that the script waits for has to be shown.
        terminal = Terminal(tmp_path / "tmux", directory, (80, 24))
        stack.callback(terminal.tmux, "kill-server")
        terminal.tmux("set", "-s", "set-clipboard", "on")
        terminal.run(*benchctl("tui"))
        Hour(terminal, directory, port, stack).play(HOUR.read_text(encoding="utf-8"))
        terminal.until(lambda text: text.rstrip().endswith(("$", "#")))

        def of_ours():
            return [command for command in commands() if str(store) in command]

        wait_until(lambda: not of_ours(), of_ours)
    with closing(Reader(store)) as reader:
        (run,) = reader.runs()
        assert (run.status, run.tags) == (Status.OK, ("desk",))
        assert [trial.status for trial in reader.trials(run.id)] == [Status.OK] * 4
