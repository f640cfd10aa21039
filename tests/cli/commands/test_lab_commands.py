"""What the commands about labs print, in labs that are really built."""

import json
import re
import signal
import subprocess
import sys

import pytest
from waiting import COMMAND_S, wait_until

pytestmark = pytest.mark.netns

FALLS = """
[hosts.a]
[hosts.b]
services = [{{ command = ["sh", "-c", "echo no disk >&2; {end}"] }}]
[links]
ab = {{ between = ["a", "b"] }}
"""


def lab(benchctl, text):
    return benchctl.profile(text, "lab.toml")


@pytest.mark.parametrize(
    ("end", "how"), [("exit 3", "exit code 3"), ("sleep 0.3; kill -9 $$", "signal 9")]
)
def test_a_service_that_dies_is_the_reason_why_a_command_was_cut_short(benchctl, end, how):
    told = benchctl(
        "lab", "exec", "--trust", lab(benchctl, FALLS.format(end=end)), "a", "--", "sleep", "900"
    )
    assert (told.returncode, told.stdout) == (3, "")
    assert "the lab failed: b: sh -c" in told.stderr
    assert told.stderr.rstrip().endswith(f"ended with {how}: no disk")


def test_a_prompt_whose_lab_has_fallen_says_why(benchctl):
    process = benchctl.start(
        "lab", "shell", "--trust", lab(benchctl, FALLS.format(end="exit 3")), stdin=-1
    )
    _, said = process.communicate("a sleep 900\n", timeout=COMMAND_S)
    assert process.returncode == 3
    assert said.rstrip().endswith("ended with exit code 3: no disk")


def test_a_command_that_fails_by_itself_keeps_its_code(benchctl):
    file = lab(benchctl, "[hosts.a]")
    told = benchctl("lab", "exec", file, "a", "--", sys.executable, "-c", "exit(7)")
    assert (told.returncode, told.stderr) == (7, "")


def test_an_interrupt_that_only_benchctl_gets_is_the_commands(benchctl):
    script = "trap 'exit 9' INT; echo ready; while :; do sleep 0.01; done"
    process = benchctl.start(
        "lab", "exec", lab(benchctl, "[hosts.a]"), "a", "--", "sh", "-c", script
    )
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=COMMAND_S) == ("", "")
    assert process.returncode == 9


def test_the_log_has_every_command_of_a_lab_with_its_host_start_and_end(benchctl):
    file = lab(
        benchctl,
        "[hosts.a]\n[hosts.b]\naliases = ['far']\n[links]\nab = { between = ['a', 'b'] }\n",
    )
    told = benchctl("lab", "exec", "--log", "log", file, "far", "--", "sh", "-c", "exit 7")
    assert (told.returncode, told.stderr) == (7, "")
    lines = (benchctl.directory / "log").read_text().splitlines()
    start, end = (line[24:] for line in lines if line[24:].startswith("b "))
    assert re.fullmatch(r"b (\d+) starts: sh -c 'exit 7'", start)
    assert re.fullmatch(r"b (\d+) ends with exit code 7 after .*: sh -c 'exit 7'", end)
    assert sum(" starts: ip -batch" in line for line in lines) > 0


def test_a_prompt_logs_each_command_when_it_ends(benchctl):
    log = benchctl.directory / "log"
    words = "lab", "shell", "--log", "log", "--log-json", lab(benchctl, "[hosts.a]")

    def ends():
        entries = map(json.loads, log.read_text().splitlines()) if log.exists() else ()
        return {
            (entry["host"], *entry["command"]): entry["exit_code"]
            for entry in entries
            if entry["event"] == "ended" and entry["host"] == "a"
        }

    with benchctl.start(*words, stdin=subprocess.PIPE) as process:
        process.stdin.write("a true &\n")
        process.stdin.flush()
        wait_until(ends)  # while the prompt waits for a line
        process.communicate("a sleep 600 &\na false\n", timeout=COMMAND_S)
    assert ends() == {("a", "true"): 0, ("a", "sleep", "600"): -15, ("a", "false"): 1}


def test_the_pairs_of_many_hosts_are_shown_by_name(benchctl):
    names = [f"h{n}" for n in range(1, 12)]
    text = "[switches.s]\n" + "".join(f"[hosts.{name}]\n" for name in names)
    text += "".join(
        f'[links.{name}]\nbetween = ["{name}", "s"]\nrate = "1Mbit"\n' for name in names
    )
    file = lab(benchctl, text)
    shown = benchctl("lab", "show", file)
    assert shown.returncode == 0
    assert f"benchctl lab show {file} h1 h2" in shown.stdout
    assert "goodput" not in shown.stdout

    def pairs(*hosts):
        lines = benchctl("lab", "show", file, *hosts).stdout.splitlines()[2:]
        return [tuple(line.split()[:2]) for line in lines if line]

    assert pairs("h1", "h7") == [("h1", "h7"), ("h7", "h1")]
    assert len(pairs("h1")) == 20
    unknown = benchctl("lab", "show", file, "h12")
    assert (unknown.returncode, unknown.stdout) == (2, "")
    assert 'the lab has no host "h12"' in unknown.stderr


def test_a_command_whose_links_were_late_is_followed_by_which(benchctl):
    file = lab(
        benchctl,
        '[hosts]\na = {}\nb = {}\n[links.core]\nbetween = ["a", "b"]\ndelay = "1ms"\n',
    )
    # The emulators are the children of the lab's init, and the only ones called so.
    script = (
        "for p in $(cat /proc/1/task/1/children); do grep -q keeper /proc/$p/cmdline && "
        'held="$held $p"; done; '
        "kill -STOP $held; ping -c 1 -W 2 b & sleep 0.2; kill -CONT $held; wait"
    )
    told = benchctl("lab", "exec", "--emulator", "user", file, "a", "--", "sh", "-c", script)
    assert told.returncode == 0
    assert "benchctl: link core, a to b: 1 of 1 frame late, by up to " in told.stderr


ISLANDS = """
[hosts]
a = {}
b = {}
c = {}
[links]
one = { between = ["a", "b"], rate = "10Mbit" }
two = { between = ["b", "c"], rate = "100kbit" }
"""


def test_pairs_without_a_path_and_doubtful_values_are_shown(benchctl):
    shown = benchctl("lab", "show", lab(benchctl, ISLANDS))
    assert shown.returncode == 0
    assert re.search(r"^a +c +no path", shown.stdout, re.M)
    assert "benchctl: warning: link two: at 100 kbit/s a queue of" in shown.stderr


def test_a_flow_without_a_path_is_refused_at_the_plan(benchctl):
    lab(benchctl, ISLANDS)
    flow = '[lab]\ntopology = "lab.toml"\n[flows.main]\nbackend = "toy"\nfrom = "a"\nto = "c"\n'
    planned = benchctl("plan", benchctl.profile(flow))
    assert planned.returncode == 2
    assert "p.toml:3: flows.main: there is no path from a to c" in planned.stderr
    assert "hosts do not forward; a router joins two networks" in planned.stderr


def test_the_plan_notes_values_that_are_hardly_meant(benchctl):
    lab(benchctl, ISLANDS)
    flow = '[lab]\ntopology = "lab.toml"\n[flows.main]\nbackend = "toy"\nfrom = "a"\nto = "b"\n'
    planned = benchctl("plan", benchctl.profile(flow))
    assert planned.returncode == 0
    assert "! note     lab: link two: at 100 kbit/s a queue of" in planned.stdout
