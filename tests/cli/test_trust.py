"""Services are commands: they are listed, and those that others may have written need a word."""

import json
import os
import pwd

import pytest

SERVICE = """
[hosts.h1]
services = [{{ command = ["sh", "-c", "touch {directory}/ran; exec sleep 1000"] }}]
[hosts.h2]
[links.l]
between = ["h1", "h2"]
"""
PROFILE = """
[lab]
topology = "lab.toml"
[flows.main]
backend = "toy"
from = "h1"
to = "h2"
"""


@pytest.fixture
def served(benchctl):
    (benchctl.directory / "lab.toml").write_text(SERVICE.format(directory=benchctl.directory))
    (benchctl.directory / "base.toml").write_text(PROFILE)
    benchctl.profile('extends = "base.toml"')
    return benchctl


def ran(benchctl):
    return (benchctl.directory / "ran").exists()


COMMANDS = [("run", "-q", "p.toml"), ("lab", "exec", "lab.toml", "h1", "true"),
            ("lab", "check", "lab.toml"), ("lab", "shell", "lab.toml")]  # fmt: skip


@pytest.mark.netns
@pytest.mark.parametrize("command", COMMANDS[:2], ids=" ".join)
def test_services_of_a_file_of_ours_run(served, command):
    result = served(*command)
    assert result.returncode == 0, result.stderr
    assert ran(served)


@pytest.mark.netns
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_services_that_others_may_have_written_need_a_word(served, command):
    (served.directory / "lab.toml").chmod(0o666)
    refused = served(*command)
    assert refused.returncode == 2
    what = "its services are commands, and"
    assert f"lab.toml: {what}" in refused.stderr
    assert "is writable by others than its owner" in refused.stderr
    assert "add --trust" in refused.stderr
    assert not ran(served)
    if "exec" in command:
        trusted = served("lab", "exec", "--trust", *command[2:])
        assert trusted.returncode == 0, trusted.stderr
        assert ran(served)
    if "run" in command:
        trusted = served(*command, "--trust")
        assert trusted.returncode == 0, trusted.stderr
        assert ran(served)


@pytest.mark.netns
def test_a_topology_without_services_needs_no_word(served):
    (served.directory / "lab.toml").write_text("[hosts]\nh1 = {}")
    (served.directory / "lab.toml").chmod(0o666)
    assert served("lab", "exec", "lab.toml", "h1", "true").returncode == 0


def test_the_plan_lists_services_and_as_whom_they_run(served):
    said = served("plan", "p.toml").stdout
    assert f"Services  run as {whoami()} while the lab stands" in said
    assert f"  h1: sh -c 'touch {served.directory}/ran; exec sleep 1000'" in said
    assert "--trust" not in said
    entry = json.loads(served("plan", "--json", "p.toml").stdout)
    assert [one["host"] for one in entry["services"]] == ["h1"]
    assert entry["needs_trust"] == ""
    (served.directory / "lab.toml").chmod(0o666)
    assert "they need --trust: " in served("plan", "p.toml").stdout
    assert json.loads(served("plan", "--json", "p.toml").stdout)["needs_trust"] != ""
    assert not ran(served)


def whoami():

    return pwd.getpwuid(os.geteuid()).pw_name


def test_the_plan_screen_lists_them_too(served):
    (served.directory / "lab.toml").chmod(0o666)
    picture = served("tui", "p.toml", "--screenshot", "plan.txt", "--size", "200x60")
    assert picture.returncode == 0, picture.stderr
    text = (served.directory / "plan.txt").read_text()
    assert f"run as {whoami()} while the lab stands" in text
    assert f"h1: sh -c 'touch {served.directory}/ran; exec sleep 1000'" in text
    assert "they need --trust: " in text
    assert not ran(served)
