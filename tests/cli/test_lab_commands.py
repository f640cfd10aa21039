"""What the commands about labs print, in labs that are really built."""

import json
import re
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
    told = benchctl("lab", "exec", lab(benchctl, FALLS.format(end=end)), "a", "--", "sleep", "900")
    assert (told.returncode, told.stdout) == (3, "")
    assert "the lab failed: b: sh -c" in told.stderr
    assert told.stderr.rstrip().endswith(f"ended with {how}: no disk")


def test_a_prompt_whose_lab_has_fallen_says_why(benchctl):
    process = benchctl.start("lab", "shell", lab(benchctl, FALLS.format(end="exit 3")), stdin=-1)
    _, said = process.communicate("a sleep 900\n", timeout=COMMAND_S)
    assert process.returncode == 3
    assert said.rstrip().endswith("ended with exit code 3: no disk")


def test_a_command_that_fails_by_itself_keeps_its_code(benchctl):
    file = lab(benchctl, "[hosts.a]")
    told = benchctl("lab", "exec", file, "a", "--", sys.executable, "-c", "exit(7)")
    assert (told.returncode, told.stderr) == (7, "")


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
