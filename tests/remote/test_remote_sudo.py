"""Hosts where who logs in is nobody, and what needs root gets it by a real sudo."""

import os
import shutil
import signal
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from remote.captured import (
    CAPTURED,
    HOSTS,
    TARGET,
    TOPOLOGY,
    as_tcpdump_records,
    ended,
    packets_of,
)
from remote.measured import Measured
from remote_lab import NEEDS, PORT, kill
from sudo_login import FREE, NOBODY, sudo_login
from waiting import wait_until

pytestmark = [
    *NEEDS,
    pytest.mark.tool("sudo", "setpriv", "unshare"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can be a host with several users"),
]

WITH_SUDO = CAPTURED.replace("\nssh = ", "\nsudo = true\nssh = ")
LONG = WITH_SUDO.replace('duration = "1s"', 'duration = "10min"') + "[run]\nattempts = 1\n"
PROGRAMS = (
    "date", "grep", "ip", "ln", "ls", "ping", "rm", "setsid", "sh", "sleep", "sudo", "uname",
)  # fmt: skip
# Faster than other users may.
PING = f"""
[hosts.paris]
sudo = true
ssh = "paris"

[servers.tokyo]
host = "{TARGET}"

[flows.main]
backend = "ping"
from = "paris"
to = "tokyo"
interval = "1ms"
duration = "10min"
"""


@contextmanager
def with_sudoers(labs, sudoers, programs=None):
    """Yield a lab whose hosts have these sudoers, and for users only these programs."""
    # Not in pytest's own directory, which nobody else may enter.
    with tempfile.TemporaryDirectory() as directory, labs.lend(TOPOLOGY) as lab:
        place = Path(directory)
        place.chmod(0o755)
        path = "/usr/bin:/bin"
        if programs:
            path = str(place / "programs")
            Path(path).mkdir()
            for name in programs:
                Path(path, name).symlink_to(shutil.which(name))
        words = sudo_login(place, sudoers, path)
        for host in HOSTS:
            lab.serve_as_root(host, *words)
        lab.configure(f"Host {' '.join(HOSTS)}\nPort {PORT}")
        yield lab


PTY = "Defaults use_pty\n"
"""The default of sudo since 1.9.14: a command gets a terminal of its own."""


@pytest.fixture
def lab(request, labs):
    with with_sudoers(labs, getattr(request, "param", PTY) + FREE) as lab:
        yield lab


def those(lab, host, word):
    """Return the processes of a host that have a word in their command lines."""
    return [pid for pid, line in lab.left(host).items() if word in line]


def user_of(pid):
    return Path(f"/proc/{pid}").stat().st_uid


def users_of(lab, word):
    """Return the users of such processes of both hosts, as long as they are there."""
    with suppress(FileNotFoundError):
        return [user_of(pid) for host in HOSTS for pid in those(lab, host, word)]
    return []


@pytest.mark.tool("tcpdump")
def test_packets_are_those_of_tcpdump_and_only_their_recorders_are_roots(lab, measure, tmp_path):
    with as_tcpdump_records(lab, tmp_path) as check:
        run = measure(WITH_SUDO)

        def at_both_hosts():
            both = [users_of(lab, word) for word in ("--snaplen", "--events")]
            return all(len(users) == 2 for users in both) and both

        users = wait_until(at_both_hosts, run.told)
        flow, files, notes = ended(run)
        check(flow, files)
    assert users == [[0, 0], [NOBODY, NOBODY]]
    assert set(files) == set(HOSTS)
    assert not any(one.left_out for one in flow.captures)
    assert not notes


def nothing_is_left(lab, before):
    def left():
        here = lab.left("here")
        return {host: lab.left(host).keys() - before[host] for host in HOSTS} | {"here": here}

    wait_until(lambda: not any(left().values()), left)


# Only the command knows of Ctrl-C.
@pytest.mark.parametrize(
    ("lab", "whose", "code"),
    [
        pytest.param("", "command", 130, id="command"),
        pytest.param(PTY, "runner", 1, id="runner, use_pty"),
    ],
    indirect=["lab"],
)
def test_ctrl_c_leaves_no_process_anywhere_and_keeps_the_packets(whose, code, lab, measure):
    before = {host: lab.left(host).keys() for host in HOSTS}
    run = measure(LONG)
    run.until("sample", 4)
    if whose == "command":
        run.interrupt()
    else:
        os.kill(run.runner, signal.SIGINT)
    flow, files, _ = ended(run, code)
    assert flow.status == "interrupted"
    assert all(packets_of(files[host])[0] for host in HOSTS)
    nothing_is_left(lab, before)


def kill_all_here(run):
    kill([run.runner])
    run.process.kill()
    run.end()


def test_a_runner_that_is_killed_at_any_moment_leaves_no_process_anywhere(lab, measure):
    before = {host: lab.left(host).keys() for host in HOSTS}
    for moment in ("trial_started", "sample", "flow_ended"):
        run = measure(f"{WITH_SUDO}[run]\nrepeats = 9\n")
        run.until(moment)
        kill_all_here(run)
        nothing_is_left(lab, before)


@pytest.mark.tool("ping", "setsid")
@pytest.mark.parametrize("how", ["Ctrl-C", "SIGKILL"])
def test_without_python_what_root_has_started_does_not_stay_either(how, labs, tmp_path):
    with with_sudoers(labs, FREE, PROGRAMS) as lab:
        before = {host: lab.left(host).keys() for host in HOSTS}
        file = tmp_path / "p.toml"
        file.write_text(PING)
        run = Measured(lab, file, ())
        run.until("sample", 4)
        [ping] = those(lab, "paris", "ping -")
        assert user_of(ping) == 0
        if how == "Ctrl-C":
            run.interrupt()
            assert run.end() == 130, run.told()
            [flow] = run.of("flow_ended")
            assert flow["metrics"]["packets_received"] > 0, flow
        else:
            kill_all_here(run)
        nothing_is_left(lab, before)
