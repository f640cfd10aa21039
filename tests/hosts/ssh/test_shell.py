"""A host without Python: what runs there by plain shells, and what is said of what is lost."""

import asyncio
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hosts.linked import has_ended
from waiting import until

from benchctl.api import Channel
from benchctl.errors import HostError
from benchctl.hosts.clocks import MOST_APART
from benchctl.hosts.hosts import Hosts
from benchctl.hosts.sent import counters, facts, ports
from benchctl.hosts.ssh import scripts, shell
from benchctl.hosts.ssh.posix import QUESTIONS
from benchctl.hosts.ssh.remote import LOST
from benchctl.hosts.ssh.shell import PlainClock
from benchctl.run.planned import Host, SshTarget

PARIS = Host("paris", "192.0.2.1", reach=SshTarget("ann@paris"))
PROGRAMS = (
    "cat", "date", "grep", "id", "ip", "ln", "ls", "rm", "setsid", "sh", "sleep", "touch", "uname",
)  # fmt: skip
SHELLS = [
    pytest.param("dash", id="dash", marks=pytest.mark.tool("dash")),
    *(
        pytest.param(shell, id=shell, marks=[pytest.mark.tool(shell.split()[0]), pytest.mark.once])
        for shell in ("bash --posix", "busybox sh")
    ),
]


@pytest.fixture(params=SHELLS)
def there(request, tmp_path, monkeypatch):
    """Let ``ssh`` run what the host would, in a shell of it; returns the folder of its programs."""
    programs, here = tmp_path / "programs", tmp_path / "here"
    programs.mkdir()
    here.mkdir()
    for name in PROGRAMS:
        (programs / name).symlink_to(shutil.which(name))
    shell, *words = request.param.split()
    shell = " ".join((shutil.which(shell), *words))
    ssh = here / "ssh"
    sed = shutil.which("sed")
    ssh.write_text(
        f"#!/bin/sh\nfor last; do :; done\necho motd; echo motd >&2\n"
        f"PATH={programs}; [ -e {tmp_path}/refuses ] && case $* in *ProxyCommand=false*) "
        "echo 'mux_client_request_session: session request failed: "
        "Session open refused by peer' >&2; exit 255;; esac\n"
        f"[ -e {tmp_path}/hangs ] && case $* in *ProxyCommand=false*) "
        f"echo $$ >>{tmp_path}/hung; exec sleep 1000;; esac\n"
        f'exec {shell} -c "$(echo "$last" | {sed} "s,/bin/sh,{shell},g")"\n'
    )
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", str(here), prepend=":")
    return programs


@pytest.fixture
def hasty(monkeypatch):
    """Let the shells end sooner what holds the output of a tool that has ended."""
    assert "; sleep 1;" in scripts._END
    monkeypatch.setattr(scripts, "_END", scripts._END.replace("; sleep 1;", "; sleep 0.1;"))


def linked(main, **settings):
    """Run ``main(hosts, link)`` on an open connection; returns what it returns."""

    async def wrapped():
        async with Hosts(lock=f"benchctl-test-{os.getpid()}", **settings) as hosts:
            return await main(hosts, await hosts.link(PARIS))

    return asyncio.run(wrapped())


async def started(hosts, *argv, env=None, at=None):
    """Start a command and open its gate; returns it and its output."""
    output = []
    process = await hosts.start(
        PARIS, argv, env or {}, lambda channel, data: output.append((channel, data))
    )
    process.begin(at)
    return process, output


def test_a_command_runs_with_its_words_and_its_environment(there):
    argv = (
        "sh",
        "-c",
        'printf "%s|" "$@" "$SECRET" "$LC_ALL"; echo err >&2; exit 7',
        "sh",
        "a b",
        "'\"$x\n\\",
    )

    async def main(hosts, _):
        process, output = await started(hosts, *argv, env={"SECRET": "it's $HOME\n"})
        return await process.wait(), output

    code, output = linked(main)
    assert code == 7
    said = {
        channel: b"".join(data for one, data in output if one is channel) for channel in Channel
    }
    assert said[Channel.STDOUT] == b"a b|'\"$x\n\\|it's $HOME\n|C|"
    assert said[Channel.STDERR] == b"err\n"


def test_a_command_waits_at_its_gate_and_is_ready_there(there, tmp_path):
    made = tmp_path / "made"

    async def main(hosts, _):
        process = await hosts.start(PARIS, ("touch", str(made)), {}, print)
        other, _ = await started(hosts, "true")
        await other.wait()
        assert process.pid > 0
        before = made.exists()
        process.begin(time.time() + 0.01)
        return before, await process.wait(), made.exists()

    assert linked(main) == (False, 0, True)


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_a_signal_reaches_the_tool_and_what_it_started(there, hasty, name):
    async def main(hosts, _):
        process, output = await started(hosts, "sh", "-c", "sleep 1000 & echo $!; wait")
        await until(lambda: output)
        process.send_signal(name)
        code = await process.wait()
        return code, int(output[0][1])

    code, child = linked(main)
    assert code == -signal.Signals[name]
    assert has_ended(child)


def test_a_tool_that_handles_a_signal_ends_as_it_likes(there):
    async def main(hosts, _):
        process, output = await started(
            hosts,
            "sh",
            "-c",
            "trap 'echo summary; exit 3' INT; echo here; while :; do sleep 0.01; done",
        )
        await until(lambda: output)
        process.send_signal("SIGINT")
        return await process.wait(), b"".join(data for _, data in output)

    assert linked(main) == (3, b"here\nsummary\n")


def test_what_holds_the_output_of_a_tool_that_has_ended_is_ended(there, hasty):
    async def main(hosts, _):
        process, output = await started(hosts, "sh", "-c", "sleep 1000 & echo $!")
        return await process.wait(), int(output[0][1])

    code, child = linked(main)
    assert code == 0
    assert has_ended(child)


@pytest.mark.parametrize("begins", [True, False], ids=["running", "at its gate"])
def test_nothing_is_left_when_the_input_closes(there, begins):
    async def main(hosts, link):
        process = await hosts.start(PARIS, ("sleep", "1000"), {}, print)
        if begins:
            process.begin()
        os.kill(link.pid, signal.SIGKILL)
        process._input.close()  # as ssh does, whose connection has broken
        return process.pid, await process.wait(), link.lost

    pid, code, lost = linked(main)
    assert code == 255
    assert "host paris: " in lost
    assert has_ended(pid)


def test_a_command_ends_when_nobody_speaks_to_it(there, monkeypatch):
    tick_s, ticks = 0.1, 3
    slow, quick = f"sleep {scripts._TICK_S};", f"sleep {tick_s};"
    assert slow in scripts._GATE
    monkeypatch.setattr(scripts, "_GATE", scripts._GATE.replace(slow, quick))

    async def main(hosts, link):
        link._patience_s = ticks * scripts._TICK_S
        began = time.monotonic()
        process, _ = await started(hosts, "sleep", "1000")
        monkeypatch.setattr(process, "say", lambda _: None)
        code = await process.wait()
        return time.monotonic() - began, code, link.lost

    lasted_s, code, lost = linked(main)
    assert lasted_s >= ticks * tick_s
    assert (code, lost) == (LOST, "")


def test_a_program_that_is_missing_is_named(there):
    async def main(hosts, _):
        process, output = await started(hosts, "iperf3", "-v")
        return await process.wait(), output

    assert linked(main) == (127, [(Channel.STDERR, b"no program iperf3 in the PATH\n")])


def test_what_benchctl_brings_needs_python(there):
    async def main(hosts, _):
        process, output = await started(hosts, sys.executable, "-I", facts.__file__, "x")
        return await process.wait(), output

    code, [(channel, said)] = linked(main)
    assert (code, channel) == (127, Channel.STDERR)
    assert said.startswith(b"facts.py needs Python 3.9 or newer there")
    assert b"iperf3" in said


def test_a_server_that_opens_no_more_sessions_is_named(there, tmp_path):
    async def main(hosts, link):
        await link.check_room(3)
        (tmp_path / "refuses").touch()
        with pytest.raises(ConnectionError, match="paris: its SSH server opens no more sessions"):
            await started(hosts, "true")
        with pytest.raises(
            HostError, match="none beside the first, where a trial needs 3"
        ) as caught:
            await link.check_room(3)
        return caught.value.hint

    assert "MaxSessions 4" in linked(main)


def test_a_session_in_which_nothing_starts_is_named_after_some_time(there, tmp_path, monkeypatch):
    """Sessions have come as far as they do when their time begins, which is then over at once."""
    monkeypatch.setattr(shell, "START_S", 1e-9)
    (tmp_path / "hangs").touch()
    hung, waits, sessions = tmp_path / "hung", asyncio.wait, []

    async def wait(waited, *, timeout=None, **how):
        if timeout == shell.START_S:
            sessions.append(waited)
            came = 1 if len(sessions) == 1 else 3  # the two of `check_room` start together
            await until(lambda: hung.exists() and len(hung.read_text().split()) >= came)
        return await waits(waited, timeout=timeout, **how)

    monkeypatch.setattr(asyncio, "wait", wait)

    async def main(hosts, link):
        words = (
            "host paris: the login works, but runs no command within 0 s; its shell prints: motd"
        )
        with pytest.raises(ConnectionError, match=words):
            await started(hosts, "true")
        with pytest.raises(HostError, match=words) as caught:
            await link.check_room(2)
        return caught.value.hint

    assert "ssh ann@paris true" in linked(main)
    pids = hung.read_text().split()
    assert len(pids) == len(sessions) == 3
    assert all(has_ended(int(pid)) for pid in pids)


def test_a_host_that_lacks_even_the_programs_of_posix_is_refused_with_both_reasons(there):
    (there / "sleep").unlink()
    with pytest.raises(HostError, match=r"it has no python3, and .*no program sleep in its PATH"):
        linked(lambda *_: None)


def test_questions_have_the_answers_of_this_machine(there):
    async def main(_, link):
        about = await link.ask(facts, "collect")
        own = [await link.ask(ports, "is_own", one) for one in ("127.0.0.2", "192.0.2.77", "::1")]
        with pytest.raises(HostError, match=r"ports.free_ports needs Python 3\.9 there"):
            await link.ask(ports, "free_ports", "127.0.0.1", 1)
        return about, own, await link.ask(ports, "first_free", "127.0.0.1", 5201, 3, None)

    about, own, free = linked(main)
    here = facts.collect()
    for key in ("hostname", "system", "kernel", "machine", "sysctls"):
        assert about[key] == here[key]
    assert about["cpu"]["count"] == here["cpu"]["count"]
    assert about["interfaces"]["lo"]["mtu"] == here["interfaces"]["lo"]["mtu"]
    assert own == [True, False, True]
    assert len(free) == 3


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc of Linux")
def test_the_counters_are_those_of_this_machine(there):
    before = counters.read()
    found = linked(lambda _, link: link.ask(counters, "read"))
    after = counters.read()
    assert found.keys() == before.keys()
    assert found["cores"].keys() == before["cores"].keys()
    for name, count in found["counts"].items():
        assert before["counts"][name] <= count <= after["counts"][name], name
    for known in (before, found):
        assert len(known["interfaces"]["lo"]) == 8


def test_a_host_that_is_not_linux_has_no_counters(there):
    script, read = QUESTIONS[counters, "read"]
    assert read("") == {}
    # Its grep finds none of the files, and says nothing.
    elsewhere = script.replace("/proc/", "/missing/")
    done = subprocess.run(["sh", "-c", elsewhere], capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")


def test_ports_that_are_listened_on_are_not_free(there):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        async def main(_, link):
            return await link.ask(ports, "first_free", "127.0.0.1", port, 1, port)

        assert linked(main) == []


def test_a_run_has_the_host_until_it_ends(there):
    async def main(_, link):
        async with Hosts(lock=f"benchctl-test-{os.getpid()}") as others:
            other = await others.link(PARIS)
            first, again = await link.lock("a b"), await link.lock("a b")
            told = await other.lock("c")
            link.unlock()
            await link.why_lost()
            taken = await other.lock("c")
            back = await link.lock("a b")
        return first, again, told, taken, back, await link.lock("a b")

    first, again, told, taken, back, last = linked(main)
    assert (first, again, taken, last) == ("", "", "", "")
    assert told.startswith("run a b of ")
    assert back.startswith("run c of ")
    assert not Path(f"/tmp/benchctl-test-{os.getpid()}.lock").is_symlink()


def test_the_lock_of_a_run_that_was_killed_holds_nobody_up(there):
    link = Path(f"/tmp/benchctl-test-{os.getpid()}.lock")
    ended = subprocess.Popen(["true"])
    ended.wait()
    link.symlink_to(f"{ended.pid}:a run that was killed")
    assert linked(lambda _, link: link.lock("c")) == ""
    assert not link.is_symlink()


def test_the_folder_of_the_socket_is_ours_alone_and_is_removed(there):
    async def main(_, link):
        folder = Path(link.folder)
        return folder, stat.S_IMODE(folder.stat().st_mode)

    folder, mode = linked(main)
    assert mode == 0o700
    assert not folder.exists()


@pytest.mark.parametrize("parts", [True, False], ids=["nanoseconds", "whole seconds"])
@pytest.mark.parametrize("skew_s", [0.0, 1234.56, -0.3])
def test_what_date_says_bounds_a_clock_truly(skew_s, parts):
    clock, trip_s = PlainClock(), 0.02
    for number in range(40):
        left_s = 1000 + number * 0.13
        theirs_s = left_s + trip_s / 2 + skew_s
        shown = f"{theirs_s:.9f}" if parts else f"{int(theirs_s)}.%N\n"
        clock.add(left_s, clock.shown(shown), left_s + trip_s)
    reading = clock.reading(1006.0)
    # The last trip was less than a second before.
    bound_s = trip_s / 2 + MOST_APART if parts else 0.6
    assert abs(reading.offset_s - skew_s) <= reading.error_s <= bound_s
    assert reading.rtt_s == pytest.approx(trip_s)
