"""What the commands about labs print, in labs that are really built."""

import sys

import pytest

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
    told = benchctl("lab", "exec", lab(benchctl, FALLS.format(end=end)), "a", "--", "sleep", "9")
    assert (told.returncode, told.stdout) == (3, "")
    assert "the lab failed: b: sh -c" in told.stderr
    assert told.stderr.rstrip().endswith(f"ended with {how}: no disk")


def test_a_prompt_whose_lab_has_fallen_says_why(benchctl):
    process = benchctl.start("lab", "shell", lab(benchctl, FALLS.format(end="exit 3")), stdin=-1)
    _, said = process.communicate("a sleep 9\n", timeout=60)
    assert process.returncode == 3
    assert said.rstrip().endswith("ended with exit code 3: no disk")


def test_a_command_that_fails_by_itself_keeps_its_code(benchctl):
    file = lab(benchctl, "[hosts.a]")
    told = benchctl("lab", "exec", file, "a", "--", sys.executable, "-c", "exit(7)")
    assert (told.returncode, told.stderr) == (7, "")
