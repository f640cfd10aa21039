"""The agent of a remote host: what it starts, says, and never leaves behind."""

import ast
import asyncio
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from hosts.linked import booted, has_ended, linked, started
from needs import PYTHONS
from waiting import DEADLINE_S, until, wait_until

from benchctl.api import Channel
from benchctl.errors import HostError
from benchctl.hosts.sent import agent, counters, facts, frames, ports
from benchctl.hosts.sent import port_check as door
from benchctl.hosts.sent.messages import ASKED, SAID, MessageReader, packed
from benchctl.hosts.ssh import remote, ssh
from benchctl.hosts.ssh.programs import AGENT, agent_text
from benchctl.hosts.tasks import cancel

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="waits by pidfd")


@pytest.fixture
def hasty(monkeypatch):
    """Let the agent cut off sooner what holds the output of a command that has ended."""

    def text(settings):
        whole = agent_text(settings)
        assert whole.count(b"\nDRAIN_S = 1.0\n") == 1
        return whole.replace(b"\nDRAIN_S = 1.0\n", b"\nDRAIN_S = 0.1\n")

    monkeypatch.setattr(remote, "agent_text", text)


@pytest.mark.parametrize("module", [*AGENT, counters, door, facts, ports], ids=lambda m: m.__name__)
def test_what_runs_elsewhere_is_written_for_python_3_9(module):
    ast.parse(Path(module.__file__).read_text(), feature_version=(3, 9))


@pytest.mark.parametrize("python", PYTHONS)
def test_an_agent_runs_a_command_and_delivers_its_output_before_its_end(python):
    async def main(link):
        process, output = await started(link, "sh", "-c", "echo out; echo err >&2; exit 7")
        return await process.wait(), sorted(output)

    assert linked(main, python) == (7, [(Channel.STDERR, b"err\n"), (Channel.STDOUT, b"out\n")])


@pytest.mark.parametrize("python", PYTHONS)
def test_a_program_of_ours_is_sent_and_runs_with_the_python_there(python):
    tool = Path("plugins/benchctl_simpleperf/simpleperf/__main__.py").resolve()

    async def main(link):
        found = []
        for _ in range(2):  # it is sent once
            words = (sys.executable, "-I", "-S", str(tool), "--version")
            process, output = await started(link, *words)
            found.append((await process.wait(), b"".join(data for _, data in output)))
        return found

    first, second = linked(main, python)
    assert first == second
    assert first[0] == 0
    assert first[1].startswith(b"simpleperf ")


def test_a_script_of_one_file_is_sent_as_it_is(tmp_path):
    script = tmp_path / "tool.py"
    script.write_text("import sys\nprint(sys.argv[1:], sys.flags.isolated)\n")

    async def main(link):
        process, output = await started(link, sys.executable, "-I", str(script), "-x", "two words")
        return await process.wait(), output

    assert linked(main) == (0, [(Channel.STDOUT, b"['-x', 'two words'] 1\n")])


def test_a_command_waits_at_its_gate(tmp_path):
    made = tmp_path / "made"

    async def main(link):
        process = await link.start(("touch", str(made)), {}, print)
        other, _ = await started(link, "true")
        await other.wait()
        before = made.exists()
        process.begin()
        return before, await process.wait(), made.exists()

    assert linked(main) == (False, 0, True)


def test_a_gate_opens_at_a_time_of_our_clock_whatever_the_far_clock_shows():
    async def main(link):
        clock = await link.timed()
        at = time.time() + 0.2
        process, _ = await started(link, "echo", "now", at=at)
        await process.wait()
        return at, process.arrived, clock.reading(at)

    at, arrived, reading = linked(main, skew_s=-3600.0)
    assert reading.offset_s == pytest.approx(-3600.0, abs=reading.error_s + 1e-3)
    assert at - reading.error_s <= arrived < at + DEADLINE_S


def test_a_clock_that_is_timed_anew_takes_no_answer_to_what_left_before(monkeypatch):
    monkeypatch.setattr(remote, "PING_S", 0.05)
    left = []

    async def main(link):
        clock = await link.timed()
        add = clock.add
        monkeypatch.setattr(clock, "add", lambda *trip: (left.append(trip[0]), add(*trip)))
        link._ping()
        before = time.time()
        link.forget_clock()
        assert len(clock) == 0
        assert await link.timed() is clock
        return before, len(clock)

    before, trips = linked(main)
    assert trips >= remote.FIRST_TRIPS
    assert min(left) >= before


def test_a_signal_reaches_all_that_a_command_has_started(hasty):
    async def main(link):
        ready, output = await started(link, "sh", "-c", "sleep 1000 & echo $!; wait")
        await until(lambda: output)
        ready.send_signal("SIGINT")
        return await ready.wait(), int(output[0][1])

    code, child = linked(main)
    assert code == -signal.SIGINT
    assert has_ended(child)


def test_output_that_a_grandchild_holds_open_is_cut_off(hasty):
    async def main(link):
        process, output = await started(link, "sh", "-c", "sleep 1000 & echo $!")
        return await process.wait(), int(output[0][1])

    code, child = linked(main)
    assert code == 0
    assert has_ended(child)


def test_much_output_arrives_whole_and_in_order():
    lines = 200_000

    async def main(link):
        process, output = await started(link, "seq", str(lines))
        return await process.wait(), b"".join(data for _, data in output)

    code, data = linked(main)
    assert code == 0
    assert data == b"".join(b"%d\n" % number for number in range(1, lines + 1))


@linux_only
def test_what_a_command_has_printed_arrives_whole_however_late_it_is_read(hasty, tmp_path):
    """More than the agent keeps for a slow connection waits in the command's own pipe.

    It must fit into that pipe and the agent's, of 64 KiB each, with the heads of its frames: the
    command does not end before all is written.
    """
    holder, size = tmp_path / "pid", agent.MOST_UNSENT + 100_000
    script = f"sleep 1000 & echo $! >{holder}; exec head -c {size} /dev/zero"

    async def main(link):
        process, output = await started(link, "sh", "-c", script)
        # Nothing is read until the time has passed that a child may hold the output.
        wait_until(lambda: holder.exists() and holder.read_text())
        assert has_ended(int(holder.read_text()))
        await process.wait()
        return sum(len(data) for _, data in output)

    assert linked(main) == size


def test_a_program_that_is_missing_there_ends_as_a_shell_ends_it():
    async def main(link):
        process, output = await started(link, "nosuch")
        return await process.wait(), output

    missing = (Channel.STDERR, b"no program nosuch in the PATH\n")
    assert linked(main) == (127, [missing])


def test_a_command_gets_its_environment_and_the_language_of_its_parser():
    async def main(link):
        process, output = await started(
            link, "sh", "-c", 'echo "$LC_ALL $SECRET"', env={"SECRET": "s"}
        )
        await process.wait()
        return output

    assert linked(main) == [(Channel.STDOUT, b"C s\n")]


@pytest.mark.parametrize("python", PYTHONS)
def test_the_facts_and_the_free_ports_of_a_host_are_asked_of_it(python, port):
    async def main(link):
        return (
            await link.ask(facts, "collect"),
            await link.ask(ports, "first_free", "127.0.0.1", port, 1),
        )

    about, free = linked(main, python)
    assert about["hostname"] == facts.collect()["hostname"]
    assert free == [port]


@linux_only
@pytest.mark.parametrize("python", PYTHONS)
def test_the_counters_of_a_host_are_asked_of_it(python):
    before = counters.read()
    there = linked(lambda link: link.ask(counters, "read"), python)
    after = counters.read()
    assert before["time_s"] <= there["time_s"] <= after["time_s"]
    assert before["cores"].keys() == there["cores"].keys()
    for name, count in there["counts"].items():
        assert before["counts"][name] <= count <= after["counts"][name], name


def test_a_question_that_nobody_waits_for_any_more_does_not_break_the_connection():
    async def main(link):
        asking = asyncio.ensure_future(link.ask(ports, "is_own", "127.0.0.1"))
        await asyncio.sleep(0)  # it is asked
        await cancel(asking)
        return await link.why_lost()

    assert linked(main) == ""


def test_a_question_that_fails_there_says_why():
    async def main(link):
        with pytest.raises(HostError, match="host far: TypeError: is_own"):
            await link.ask(ports, "is_own")

    linked(main)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give rights away")
def test_an_agent_of_sudo_gives_root_only_to_what_needs_it(monkeypatch):
    monkeypatch.setenv("SUDO_UID", "65534")

    async def main(link):
        found = []
        for as_root in (False, True):
            output = []
            take = lambda _, data, output=output: output.append(data)  # noqa: E731
            process = await link.start(("id", "-u"), {}, take, as_root=as_root)
            process.begin()
            await process.wait()
            found += output
        waiting = await link.start(("sleep", "1000"), {}, print)
        waiting.begin()
        waiting.send_signal("SIGTERM")  # root may end what is another's
        return found, await waiting.wait()

    assert linked(main) == ([b"65534\n", b"0\n"], -signal.SIGTERM)


# What BSD and macOS lack, in Python and in the kernel's names for it.
ELSEWHERE = (
    "import os, selectors, signal, socket, sys; sys.platform = 'darwin'; "
    "selectors.DefaultSelector = selectors.PollSelector; "
    "lacks = {os: ('pidfd_open', 'memfd_create', 'sched_getaffinity', 'sched_setaffinity'), "
    "signal: ('pidfd_send_signal',), "
    "socket: ('AF_PACKET', 'AF_NETLINK', 'SO_BINDTODEVICE', 'TCP_INFO')}; "
    "[delattr(of, name) for of, names in lacks.items() for name in names if hasattr(of, name)]; "
)


@linux_only
@pytest.mark.parametrize("python", PYTHONS)
def test_an_agent_needs_nothing_that_only_linux_has(python, port):
    """Its lock is a file there; everything else is as it is here."""
    name = f"benchctl-test-bsd-{os.getpid()}"
    file = Path(f"/tmp/{name}.lock")
    code = f"{ELSEWHERE}{ssh.BOOT}"

    async def main(link):
        taken = await link.lock("first"), file.exists()
        about = await link.ask(facts, "collect")
        free = await link.ask(ports, "first_free", "127.0.0.1", port, 1)
        process, output = await started(link, "sh", "-c", "echo $$; exec sleep 1000")
        await until(lambda: output)
        process.send_signal("SIGINT")
        ended = await process.wait()
        waiting = await link.start(("sleep", "1000"), {}, print)
        waiting.begin()
        await link.why_lost()  # everything before it is done
        return taken, about["hostname"], free, ended, waiting.pid, link.about["system"]

    argv = (python, "-I", "-S", "-c", code)
    taken, hostname, free, ended, left, system = linked(main, argv=argv, lock=name)
    assert (taken, free, ended, system) == (("", True), [port], -signal.SIGINT, "darwin")
    assert hostname == facts.collect()["hostname"]
    assert has_ended(left)
    assert not file.exists()


# --- nothing stays behind ---------------------------------------------------------------------


def running(*argv, **settings):
    """Start an agent that nobody pings, with one command; returns it and the command's group.

    The group is None if the agent has ended before.
    """
    settings = {"lock": f"benchctl-test-{os.getpid()}", "patience_s": DEADLINE_S, **settings}
    text = agent_text(settings)
    process = subprocess.Popen(booted(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    process.stdin.write(b"%d\n" % len(text) + text)
    data = b""
    while frames.HELLO not in data:
        data += os.read(process.stdout.fileno(), 1 << 16)
    with suppress(BrokenPipeError):
        argv = argv or ["sleep", "1000"]
        process.stdin.write(packed(ASKED, "start", number=1, argv=argv, env={}))
        process.stdin.write(packed(ASKED, "begin", number=1))
    heard, data = MessageReader(SAID), data.partition(frames.HELLO)[2]
    while True:
        for name, fields, _ in heard.feed(data):
            if name == "started":
                return process, fields["pid"]
        data = os.read(process.stdout.fileno(), 1 << 16)
        if not data:
            return process, None


def close(process):
    process.stdin.close()
    process.stdout.close()
    return process.wait(DEADLINE_S)


@linux_only
def test_what_it_started_ends_when_the_connection_closes():
    process, group = running()
    close(process)
    assert has_ended(group)


@linux_only
def test_what_it_started_ends_when_the_connection_is_silent():
    patience_s, group = 0.1, None
    while group is None:  # a busy machine is slower than that to say the first word
        process, group = running(patience_s=patience_s)
        if group is not None:
            assert has_ended(group)
        close(process)
        patience_s *= 2


@linux_only
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT", "SIGKILL"])
def test_what_it_started_ends_when_the_agent_is_ended(name):
    process, group = running()
    process.send_signal(signal.Signals[name])
    assert has_ended(group)
    close(process)


@linux_only
def test_what_it_started_ends_when_nobody_reads_what_it_says():
    process, group = running()
    process.stdout.close()
    process.stdin.write(packed(ASKED, "ping", number=1))
    process.stdin.flush()
    assert has_ended(group)
    process.stdin.close()
    process.wait(DEADLINE_S)


@linux_only
def test_what_it_started_ends_when_something_else_speaks():
    process, group = running()
    process.stdin.write(b"GET / HTTP/1.1\r\n\r\n")
    process.stdin.flush()
    assert has_ended(group)
    close(process)


# --- one run at a time ------------------------------------------------------------------------


def test_a_host_that_a_run_has_is_not_given_to_another_until_the_agent_has_ended():
    name = f"benchctl-test-lock-{os.getpid()}"

    async def other(link):
        return await link.lock("second")

    async def main(link):
        assert await link.lock("first") == ""
        assert await link.lock("first") == ""  # it has it
        taken = await asyncio.to_thread(linked, other, lock=name)
        os.kill(link.about["pid"], signal.SIGKILL)
        await link.ended
        free = await asyncio.to_thread(linked, other, lock=name)
        return taken, free

    taken, free = linked(main, lock=name)
    assert taken.startswith("run first of ")
    assert free == ""


def test_a_host_that_was_given_back_is_free():
    name = f"benchctl-test-back-{os.getpid()}"

    async def main(link):
        await link.lock("first")
        link.unlock()
        await link.why_lost()  # everything before it is done
        return await asyncio.to_thread(linked, lambda other: other.lock("second"), lock=name)

    assert linked(main, lock=name) == ""
