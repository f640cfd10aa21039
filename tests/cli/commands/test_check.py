"""``check``, ``init`` and a profile from stdin."""

import os
import pty
import subprocess

import pytest
from waiting import COMMAND_S, wait_until

from benchctl.profile.find import shipped_profiles, shipped_topologies

GOOD = '[flows.main]\nbackend = "toy"\n'


def test_everything_that_comes_with_benchctl_is_right(benchctl):
    result = benchctl("check", *shipped_profiles(), *shipped_topologies())
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (GOOD + '  durration = "1s"\n', "3:3: flows.main.durration: toy has no such parameter;"),
        (GOOD.replace("toy", "toi"), '2:1: flows.main.backend: no backend "toi"; did you mean'),
        (GOOD + 'duration = "1m"\n', "3:1: flows.main.duration: "),
        (GOOD + "[axes]\nplan = [ 'ok',\n  5 ]\n", "5:3: axes.plan[1]: "),
        ("[flows.main]\nbackend = toy\n", "2:11: invalid TOML: invalid value"),
        ('flows = { main = { backend = "toy", to = "x" } }', "1:37: flows.main.to: "),
        ('[hosts.a]\n[links.x]\nbetween = ["a", "b"]\n', '3:1: links.x.between: no node "b"'),
        ("", "1:1: flows: is missing"),
    ],
)
def test_a_mistake_is_told_with_file_line_and_column(benchctl, text, line):
    name = benchctl.profile(text)
    good = benchctl.profile(GOOD, "good.toml")
    result = benchctl("check", good, name)
    assert result.returncode in (2, 3)
    assert result.stdout.startswith(f"{name}:{line}")
    assert (result.stdout.count("\n"), result.stderr) == (1, "")
    told = benchctl("check", "-", stdin=text).stdout
    assert told == result.stdout.replace(name, "stdin")


def test_every_file_is_checked_and_the_first_error_decides_the_code(benchctl):
    wrong = benchctl.profile(GOOD + "x = 1\n")
    result = benchctl("check", "missing.toml", wrong)
    assert result.returncode == 2
    assert [line.split(":")[0] for line in result.stdout.splitlines()] == ["missing.toml", wrong]


def test_a_check_looks_at_no_tool_and_no_device_of_this_machine(benchctl):
    name = benchctl.profile(GOOD + 'interface = "wire"\n[interfaces.wire]\ndevice = "none0"\n')
    assert benchctl("check", name).returncode == 0
    assert benchctl("plan", name).returncode == 3


def test_a_profile_from_stdin_is_run_and_kept(benchctl):
    result = benchctl("run", "-", "--set", "duration=50ms", stdin=GOOD)
    assert (result.returncode, "9.00 kbit/s" in result.stdout) == (0, True)
    assert "stdin" in benchctl("runs").stdout
    assert benchctl("show", "last", "--profile").stdout.startswith(f"# stdin\n{GOOD}")
    assert "9.00" not in benchctl("plan", "-", stdin=GOOD).stdout


def test_the_first_profile_is_right_and_no_file_is_overwritten(benchctl):
    assert benchctl("init").stdout == "profile.toml\n"
    assert benchctl("check", "profile.toml").returncode == 0
    before = (benchctl.directory / "profile.toml").read_text()
    result = benchctl("init")
    assert (result.returncode, "profile.toml: the file exists" in result.stderr) == (2, True)
    result = benchctl("init", "no/profile.toml")
    assert (result.returncode, "No such file or directory" in result.stderr) == (2, True)
    assert benchctl("init", "-").stdout == before
    assert benchctl("plan", "-", stdin=before).returncode == 0


def test_on_a_terminal_three_questions_are_asked_until_they_have_answers(benchctl):
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*benchctl.words, "init", "mine.toml"], cwd=benchctl.directory, env=benchctl.environment,
        stdin=theirs, stdout=subprocess.DEVNULL, stderr=theirs,
    )  # fmt: skip
    os.close(theirs)
    shown = ""

    def asked(question):
        nonlocal shown
        shown += os.read(ours, 4096).decode()
        return question in shown

    for question, answer in (
        ("Server", "http://x"), ("neither a host name", "192.0.2.1"), ("Tool [iperf3]", "ping"),
        ("does not measure throughput", "simpleperf"), ("Duration", "5m"), ("5m", "2s"),
    ):  # fmt: skip
        wait_until(lambda question=question: asked(question))
        shown = ""
        os.write(ours, f"{answer}\n".encode())
    assert process.wait(timeout=COMMAND_S) == 0
    os.close(ours)
    text = (benchctl.directory / "mine.toml").read_text()
    assert 'server = { host = "192.0.2.1" }' in text
    assert 'backend = "simpleperf"' in text
    assert 'duration = "2s"' in text
    assert benchctl("check", "mine.toml").returncode == 0
