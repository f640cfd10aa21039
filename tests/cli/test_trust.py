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
verify = false
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


# A lab does not wait for what its services do.
WAITS = ("sh", "-c", "until [ -e ran ]; do sleep 0.01; done")
COMMANDS = [("run", "-q", "p.toml"), ("lab", "exec", "lab.toml", "h1", *WAITS),
            ("lab", "check", "lab.toml"), ("lab", "shell", "lab.toml")]  # fmt: skip


def kind_of(command):
    return " ".join(command[:2])


@pytest.mark.netns
@pytest.mark.parametrize("command", COMMANDS[:2], ids=kind_of)
def test_services_of_a_file_of_ours_run_only_when_they_are_agreed_to(served, command):
    refused = served(*command)
    assert refused.returncode == 2
    assert (
        "it runs commands that you have not agreed to: h1 service: sh -c 'touch" in refused.stderr
    )
    assert "--trust" in refused.stderr
    assert not ran(served)
    place = command.index("exec" if "exec" in command else "run") + 1
    result = served(*command[:place], "--trust", *command[place:])
    assert result.returncode == 0, result.stderr
    assert ran(served)


def test_commands_are_asked_for_once_at_a_terminal(benchctl):
    benchctl.environment["XDG_STATE_HOME"] = str(benchctl.directory / "state")
    text = '[hosts.local]\nprepare = "echo ran >> log"\n[flows.main]\nbackend = "toy"\n'
    benchctl.profile(text)
    log = benchctl.directory / "log"

    code, said = benchctl.at_a_terminal("run", "p.toml", "-q", typed="n\n")
    assert code == 2
    assert "local prepare: echo ran >> log" in said
    assert not log.exists()
    code, said = benchctl.at_a_terminal("run", "p.toml", "-q", typed="y\n")
    assert code == 0, said
    assert "Run them, now and from now on?" in said
    # Jobs of the night have no terminal, and no question is left.
    assert benchctl("run", "p.toml", "-q").returncode == 0
    assert log.read_text() == "ran\n" * 2
    benchctl.profile(text.replace("echo ran", "echo other"))
    again = benchctl("run", "p.toml", "-q")
    assert (again.returncode, log.read_text()) == (2, "ran\n" * 2)
    assert "local prepare: echo other >> log" in again.stderr


def test_a_command_on_another_machine_of_the_same_name_is_another_command(benchctl):
    text = '[hosts.far]\nssh = "{}"\nprepare = "true"\n[flows.main]\nbackend = "toy"\n'
    for target in ("far.test", "other.test"):
        said = benchctl("run", benchctl.profile(text.format(target)), "-q").stderr
        assert f"far (ssh {target}) prepare: true" in said


@pytest.mark.netns
@pytest.mark.parametrize("command", COMMANDS, ids=kind_of)
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
    assert "a terminal asks, or --trust: you have not agreed to them yet" in said
    entry = json.loads(served("plan", "--json", "p.toml").stdout)
    assert [one["host"] for one in entry["services"]] == ["h1"]
    assert entry["needs_trust"] == "you have not agreed to them yet"
    (served.directory / "lab.toml").chmod(0o666)
    assert "they need --trust: " in served("plan", "p.toml").stdout
    assert json.loads(served("plan", "--json", "p.toml").stdout)["needs_trust"] != ""
    assert not ran(served)


def whoami():

    return pwd.getpwuid(os.geteuid()).pw_name


def test_the_plan_screen_lists_them_too(served):
    (served.directory / "lab.toml").chmod(0o666)
    picture = served("tui", "p.toml", "--screenshot", "plan.txt", "--size", "300x60")
    assert picture.returncode == 0, picture.stderr
    text = (served.directory / "plan.txt").read_text()
    assert f"run as {whoami()} while the lab stands" in text
    assert f"h1: sh -c 'touch {served.directory}/ran; exec sleep 1000'" in text
    assert "they need --trust: " in text
    assert not ran(served)
