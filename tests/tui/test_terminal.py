"""The real program in a real terminal: attach to a run, freeze, go on, quit, look back."""

import os
import pty
import signal
import subprocess

import pytest
from tui.terminal import Terminal, benchctl
from waiting import COMMAND_S

PROFILE = """
[lab]
topology = "two.toml"
verify = false
[hosts.a]
cleanup = "until test -e {goes_on}; do sleep 0.1; done"
[flows.main]
backend = "ping"
duration = "2s"
interval = "200ms"
from = "a"
to = "b"
[run]
repeats = 2
pause = "0s"
"""
LAB = """
[hosts]
a = {}
b = {}
[links]
wire = { between = ["a", "b"], delay = "5ms" }
"""


@pytest.fixture
def terminal(tmp_path, monkeypatch):
    monkeypatch.setenv("BENCHCTL_STORE", str(tmp_path / "runs.sqlite"))
    monkeypatch.setenv("PS1", "$ ")
    terminal = Terminal(tmp_path / "tmux", tmp_path)
    yield terminal
    terminal.tmux("kill-server")


@pytest.mark.netns
@pytest.mark.tool("tmux", "ping")
def test_a_lab_run_is_watched_frozen_and_left_in_a_real_terminal(terminal, tmp_path):
    goes_on = tmp_path / "goes_on"  # until then, the first trial does not end
    (tmp_path / "p.toml").write_text(PROFILE.format(goes_on=goes_on))
    (tmp_path / "two.toml").write_text(LAB)
    run = subprocess.Popen(
        benchctl("run", "p.toml", "-q", "--trust", "--events"),
        cwd=tmp_path, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    next(line for line in run.stdout if '"trial_started"' in line)
    terminal.run(*benchctl("tui", "--attach"))
    terminal.until(lambda text: "▶ running" in text and "RTT" in text and "┤" in text)

    terminal.press("Space")
    frozen = terminal.until(lambda text: "FROZEN" in text)
    terminal.press("Space")
    terminal.until(lambda text: "FROZEN" not in text and text != frozen)
    terminal.press("q")
    terminal.until(lambda text: "FROZEN" not in text and "Live" not in text)
    assert run.poll() is None
    goes_on.touch()
    events, _ = run.communicate(timeout=COMMAND_S)
    assert run.returncode == 0
    assert events.count('"trial_ended"') == 2

    terminal.run(*benchctl("tui", "--replay", "last", "--at", "1s"))
    terminal.until(lambda text: "Replay" in text and "a main" in text)
    terminal.press(".", ".", ".", ".")
    terminal.until(lambda text: "■ end x16" in text and "✓ ok" in text.splitlines()[0])
    terminal.press("q")
    terminal.until(lambda text: "■ end" not in text)


@pytest.mark.tool("tmux")
def test_the_screens_are_as_large_as_the_terminal_whatever_a_shell_exports(terminal):
    terminal.run("env", "COLUMNS=70", "LINES=20", *benchctl("tui"))
    terminal.until(lambda text: "? Keys" in text.splitlines()[29])
    terminal.tmux("resize-window", "-x", "90", "-y", "25")
    terminal.until(lambda text: "? Keys" in text.splitlines()[24])
    terminal.press("q")
    terminal.until(lambda text: "? Keys" not in text)


@pytest.mark.parametrize("hang_up", [signal.SIG_DFL, signal.SIG_IGN])
def test_the_screens_end_when_their_terminal_is_gone(tmp_path, hang_up):
    """A process without a controlling terminal gets no signal when its terminal hangs up."""
    ours, theirs = pty.openpty()
    before = signal.signal(signal.SIGHUP, hang_up)  # inherited if ignored
    try:
        screens = subprocess.Popen(
            benchctl("tui", "--store", str(tmp_path / "runs.sqlite")),
            stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
            env={**os.environ, "TERM": "xterm-256color"},
        )  # fmt: skip
    finally:
        signal.signal(signal.SIGHUP, before)
    os.close(theirs)
    with screens:
        try:
            said = b""
            while b"Plan" not in said:
                said += os.read(ours, 65536)
            os.close(ours)
            expected = signal.SIGTERM if hang_up is signal.SIG_IGN else signal.SIGHUP
            assert screens.wait(timeout=COMMAND_S) == -expected
        finally:
            screens.kill()
