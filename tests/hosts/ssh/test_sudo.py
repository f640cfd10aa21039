"""What needs root on a remote host gets it by a real sudo, and leaves nothing behind."""

import asyncio
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hosts.linked import has_ended, linked
from msgspec.structs import replace
from sudo_login import FREE, NOBODY, sudo_login
from waiting import COMMAND_S, until

from benchctl.errors import HostError
from benchctl.hosts.hosts import Hosts
from benchctl.hosts.ssh import ssh
from benchctl.hosts.ssh.remote import LOST
from benchctl.run.planned import Host, SshTarget

pytestmark = [
    pytest.mark.tool("sudo", "unshare", "setpriv"),
    pytest.mark.once,
    pytest.mark.skipif(sys.platform != "linux", reason="waits by pidfd, and mounts"),
    # A user namespace of an ordinary user has no other user whom sudo could serve.
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can be a host with several users"),
]


@pytest.fixture
def login():
    """Return the command of a login as nobody, on a host with a text in its sudoers."""
    # Not in pytest's own directory, which nobody else may enter.
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        place.chmod(0o755)

        def login(sudoers, path="/usr/bin:/bin"):
            return *sudo_login(place, sudoers, path), ssh.there(True)

        login.place = place
        yield login


@pytest.mark.tool("ping")
@pytest.mark.parametrize("sudo", [True, False])
def test_a_ping_that_is_too_fast_for_other_users_runs_as_root(login, tmp_path, sudo):
    words = login(FREE)
    script = tmp_path / "ssh"
    script.write_text(f'#!/bin/sh\nfor last; do :; done\nexec {shlex.join(words[:-1])} "$last"\n')
    script.chmod(0o755)
    profile, out = tmp_path / "p.toml", tmp_path / "out.json"
    profile.write_text(FAST.format(sudo=str(sudo).lower()))
    done = subprocess.run(
        [sys.executable, "-m", "benchctl", "run", str(profile), "--quiet", "-o", str(out),
         "--store", str(tmp_path / "runs.sqlite")],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True, text=True, check=False, timeout=COMMAND_S,
    )  # fmt: skip
    assert done.returncode == (0 if sudo else 1), done.stdout + done.stderr
    ((flow,),) = [trial["flows"] for trial in json.loads(out.read_text())["trials"]]
    if sudo:
        assert flow["metrics"]["packets_received"] > 0
    else:
        assert "root" in flow["hint"], flow


FAST = """
[hosts.paris]
ssh = "paris"
address = "127.0.0.1"
sudo = {sudo}

[servers.loopback]
host = "127.0.0.1"

[flows.main]
backend = "ping"
from = "paris"
to = "loopback"
interval = "1ms"
count = 20

[run]
attempts = 1
"""


async def output_of(link, *argv, as_root):
    output = []
    process = await link.start(argv, {}, lambda _, data: output.append(data), as_root=as_root)
    process.begin()
    await process.wait()
    return b"".join(output).decode().strip()


# Debian 13 and Ubuntu 24.04 have use_pty from the start.
@pytest.mark.parametrize("more", ["", "Defaults use_pty\n"], ids=["plain", "use_pty"])
def test_only_what_needs_root_gets_it_and_signals_reach_both(login, more):
    async def main(link):
        users = [await output_of(link, "id", "-u", as_root=one) for one in (False, True)]
        ends = []
        for as_root in (False, True):
            waiting = await link.start(("sleep", "1000"), {}, print, as_root=as_root)
            waiting.begin()
            waiting.send_signal("SIGINT")
            ends.append(await waiting.wait())
        return users, ends

    assert linked(main, argv=login(more + FREE)) == (
        [str(NOBODY), "0"], [-signal.SIGINT, -signal.SIGINT],
    )  # fmt: skip


@pytest.mark.parametrize("how", ["closed", "killed"])
def test_what_root_has_started_ends_with_the_connection(login, how):
    async def main(link):
        process = await link.start(("sleep", "1000"), {}, print, as_root=True)
        process.begin()
        await output_of(link, "true", as_root=False)  # what was asked before is done
        if how == "killed":
            os.killpg(link.pid, signal.SIGKILL)
            await link.ended
        return process.pid, link.about["pid"]

    for pid in linked(main, argv=login(FREE)):
        assert has_ended(pid)


@pytest.mark.parametrize(
    ("sudoers", "message", "hint"),
    [
        ("ALL ALL=(ALL) ALL\n", "sudo would ask for a password", "NOPASSWD"),
        ("root ALL=(ALL) ALL\n", "sudo would ask for a password", "NOPASSWD"),
        (f"Defaults requiretty\n{FREE}", "sudo wants a terminal", "requiretty"),
    ],
    ids=["a password", "not a sudoer", "a terminal"],
)
def test_a_sudo_that_does_not_serve_says_why_at_once(login, sudoers, message, hint):
    with pytest.raises(HostError) as caught:
        linked(None, argv=login(sudoers))
    assert caught.value.message == f"host far: {message}"
    assert hint in caught.value.hint


def test_a_host_without_sudo_says_so(login):
    programs = login.place / "programs"
    programs.mkdir()
    (programs / "python3").symlink_to("/usr/bin/python3")
    with pytest.raises(HostError, match="host far: it has no sudo"):
        linked(None, argv=login(FREE, path=str(programs)))


def test_root_gets_the_python_that_was_found_whatever_sudo_has_in_its_path(login):
    programs = login.place / "programs"
    programs.mkdir()
    (programs / "python3").symlink_to("/usr/bin/python3")
    argv = login(f"Defaults secure_path=/nonexistent\n{FREE}", path=f"{programs}:/usr/bin:/bin")

    async def main(link):
        return await output_of(link, "/usr/bin/id", "-u", as_root=True)

    assert linked(main, argv=argv) == "0"


# --- hosts without Python ---------------------------------------------------------------------

SHELLS = [
    pytest.param(shell, id=shell, marks=pytest.mark.tool(shell))
    for shell in ("dash", "bash", "busybox")
]
PROGRAMS = ("date", "grep", "id", "ln", "ls", "rm", "setsid", "sh", "sleep", "sudo")
PLAIN = Host("far", "192.0.2.1", reach=SshTarget("far", sudo=True))
AS_ROOT = replace(PLAIN, as_root=True)


@pytest.fixture(params=SHELLS)
def bare(request, login, tmp_path, monkeypatch):
    """Return what runs ``main(hosts)`` where ``ssh`` logs in to a host without Python, which has a
    text in its sudoers, and this for ``/bin/sh``."""
    programs = login.place / "programs"
    programs.mkdir()
    for name in PROGRAMS:
        (programs / name).symlink_to(shutil.which(name))

    def run(main, sudoers):
        shell = f"mount -n --bind {shutil.which(request.param)} /bin/sh"
        words = sudo_login(login.place, sudoers, str(programs), shell)
        script = tmp_path / "ssh"
        script.write_text(f'#!/bin/sh\nfor last; do :; done\nexec {shlex.join(words)} "$last"\n')
        script.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=":")

        async def wrapped():
            async with Hosts(lock=f"benchctl-test-{os.getpid()}") as hosts:
                await hosts.link(PLAIN)
                return await main(hosts)

        return asyncio.run(wrapped())

    return run


async def by_plain_shell(hosts, host, *argv):
    output = []
    process = await hosts.start(host, argv, {}, lambda _, data: output.append(data))
    process.begin()
    return process, output


@pytest.mark.parametrize("more", ["", "Defaults use_pty\n"], ids=["plain", "use_pty"])
def test_without_python_only_what_needs_root_gets_it_and_signals_reach_both(bare, more):
    async def main(hosts):
        users, ends = [], []
        for host in (PLAIN, AS_ROOT):
            process, output = await by_plain_shell(hosts, host, "id", "-u")
            users.append((await process.wait(), b"".join(output)))
            for name in ("SIGINT", "SIGTERM", "SIGKILL"):
                argv = ("sh", "-c", "echo here; exec sleep 1000")
                process, output = await by_plain_shell(hosts, host, *argv)
                await until(lambda output=output: output)
                process.send_signal(name)
                ends.append((await process.wait(), has_ended(process.pid)))
        return users, ends

    users, ends = bare(main, more + FREE)
    assert users == [(0, b"%d\n" % NOBODY), (0, b"0\n")]
    assert ends == [(-2, True), (-15, True), (-9, True)] * 2


@pytest.mark.parametrize("more", ["", "Defaults use_pty\n"], ids=["plain", "use_pty"])
@pytest.mark.parametrize("begins", [True, False], ids=["running", "at its gate"])
def test_without_python_what_root_has_started_ends_with_the_connection(bare, begins, more):
    async def main(hosts):
        process = await hosts.start(AS_ROOT, ("sleep", "1000"), {}, print)
        if begins:
            process.begin()
        os.kill((await hosts.link(PLAIN)).pid, signal.SIGKILL)
        process._input.close()  # as ssh does, whose connection has broken
        return process.pid, await process.wait()

    pid, code = bare(main, more + FREE)
    assert code == LOST
    assert has_ended(pid)


@pytest.mark.parametrize(
    ("sudoers", "message", "hint"),
    [
        ("ALL ALL=(ALL) ALL\n", "sudo would ask for a password", "NOPASSWD"),
        (f"Defaults requiretty\n{FREE}", "sudo wants a terminal", "requiretty"),
    ],
    ids=["a password", "a terminal"],
)
def test_without_python_a_sudo_that_does_not_serve_says_why_at_once(bare, sudoers, message, hint):
    with pytest.raises(HostError) as caught:
        bare(None, sudoers)
    assert caught.value.message == f"host far: {message}"
    assert hint in caught.value.hint
