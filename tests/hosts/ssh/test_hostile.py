"""A host that lies, floods or says nothing is lost with the reason, and holds nobody up."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
import zlib
from pathlib import Path
from types import SimpleNamespace

import pytest
from engine.fakes import EPOCH, run_virtual
from hosts.linked import linked, started

from benchctl.api import Channel
from benchctl.engine.trial.capture import HostCapture, HostRecorder
from benchctl.errors import HostError
from benchctl.hosts.local.spawn import STOP_GRACE_S, stop
from benchctl.hosts.sent import facts, ports
from benchctl.hosts.sent.frames import MOST_HEAD
from benchctl.hosts.sent.messages import ASKED, SAID, MessageReader, packed
from benchctl.hosts.ssh import login, remote
from benchctl.hosts.ssh.remote import RemoteHost
from benchctl.hosts.ssh.shell import PlainClock, _Answers
from benchctl.run.planned import Host, SshTarget

# An agent that does what its text says with each message: it has no table.
HOSTILE = """
import json, os, struct, sys, time
i = sys.stdin.buffer
i.read(int(i.readline()))
def send(text, body=b""):
    text = text.encode()
    os.write(1, struct.pack(">II", len(text), len(body)) + text + body)
def heard():
    while head := i.read(8):
        length, body = struct.unpack(">II", head)
        message = json.loads(i.read(length))
        i.read(body)
        yield message
os.write(1, b"\\0benchctl agent 1\\n")
def pong(m):
    send('{"is":"pong","number":%d,"time_s":%r}' % (m["number"], time.time()))
for m in heard():
    what = m["is"]
    TEXT
"""


def hostile(text):
    """Return the command of an agent that handles each message ``m`` by a text."""
    lines = text.strip().replace("\n", "\n    ")
    return (sys.executable, "-I", "-S", "-c", HOSTILE.replace("TEXT", lines))


def lost(text):
    async def main(link):
        return await link.ended

    return linked(main, argv=hostile(text))


PONGS = "if what == 'ping': pong(m)\n"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('send(\'{"is":"pong","number":1,"time_s":1e308}\')', r"pong: time_s: 1e\+308 is not "),
        ('send(\'{"is":"pong","number":1,"time_s":NaN}\')', "pong: time_s: nan is not a number"),
        ('send(\'{"is":"pong","number":5,"time_s":1.0}\')', "pong: 5, after 0 of 1"),
        ('send(\'{"is":"pong","number":1,"time_s":1.0}\')\n' * 40, "pong: 1, after 1 of "),
        ('send(\'{"is":"output","number":1}\')', "output: channel is missing"),
        ('send("[1]")', "not a frame"),
        ('send("7" * 5000)', "."),
        ('os.write(1, b"\\xff" * 100)', "not a frame"),
        ('send("[" * 100000)', "nested too deeply|Expecting"),
        ('send(\'{"is":"nothing"}\')', "'nothing' is not a message"),
    ],
    ids=[
        "huge", "nan", "unasked", "twice", "missing", "list", "digits", "noise", "deep", "unknown",
    ],
)  # fmt: skip
def test_a_host_that_breaks_the_table_is_lost_with_the_reason(text, why):
    said = lost(text)
    assert said.startswith("host far: what its agent says is not allowed: ")
    assert re.search(why, said), said


def test_a_body_that_is_announced_as_larger_than_any_is_not_waited_for():
    assert "not a frame" in lost('os.write(1, struct.pack(">II", 20, 64 << 20)); time.sleep(60)')


@pytest.mark.parametrize(
    ("value", "why"), [("7", "facts.collect: 7 is not a table"), ('"x"', "'x' is not a table")]
)
def test_facts_that_are_none_are_the_hosts_fault(value, why):
    async def main(link):
        with pytest.raises(HostError, match=rf"host far: what its agent says .*: {why}"):
            await link.ask(facts, "collect")

    answer = f'\'{{"is":"answer","number":%d,"value":{value}}}\' % m["number"]'
    linked(main, argv=hostile(f"{PONGS}if what == 'ask': send({answer})"))


def test_an_answer_that_comes_twice_is_taken_once():
    async def main(link):
        return await link.ask(ports, "is_own", "127.0.0.1"), await link.why_lost()

    answer = 'send(\'{"is":"answer","number":%d,"value":true}\' % m["number"])'
    twice = f"if what == 'ask': {answer}; {answer}"
    assert linked(main, argv=hostile(PONGS + twice)) == (True, "")


def test_ports_that_are_none_exclude_no_packets():
    async def main(link):
        await link.timed()
        return link.ports

    hello = {"is": "hello", "python": "3", "system": "x", "pid": 1}
    hello["connection"] = ["::1", "9" * 60, "22"]
    assert linked(main, argv=hostile(f"send({json.dumps(hello)!r})\n{PONGS}")) == frozenset()


def test_an_agent_that_crashes_is_lost_with_its_last_words():
    assert lost("raise SystemError('out of \\x1b[31mluck')") == (
        r"host far: SystemError: out of \x1b[31mluck"
    )


def test_a_clock_that_jumps_is_timed_all_the_same(monkeypatch):
    monkeypatch.setattr(remote, "PING_S", 0.05)

    async def main(link):
        await link.timed()
        return link.clock.steps

    jumps = 'send(\'{"is":"pong","number":%d,"time_s":%d}\' % (m["number"], m["number"] % 9 * 1e6))'
    assert linked(main, argv=hostile(f"if what == 'ping': {jumps}")) > 0


# --- hosts that owe something -----------------------------------------------------------------

STARTS = 'if what == \'start\': send(\'{"is":"started","number":%d,"pid":7}\' % m[\'number\'])\n'


def test_an_end_that_never_comes_is_a_lost_host(monkeypatch):
    monkeypatch.setattr(remote, "PROMPT_S", 0.2)
    monkeypatch.setattr(remote, "PING_S", 0.05)

    async def main(link):
        process, output = await started(link, "true")
        return await stop(process, "SIGKILL", 0.0), output, link.lost

    code, output, why = linked(main, argv=hostile(PONGS + STARTS))
    assert code == remote.LOST
    assert why.startswith("host far: its agent owes the end of a command that was killed for ")
    assert output[-1][1] == f"{why}\n".encode()


def test_a_host_that_speaks_without_answering_is_lost(monkeypatch):
    monkeypatch.setattr(remote, "ANSWER_S", 0.2)
    monkeypatch.setattr(remote, "PING_S", 0.05)

    async def main(link):
        return await link.ended

    noise = 'send(\'{"is":"output","number":1,"channel":1,"time_s":1.0}\', b"x")'
    argv = hostile(f"while True: {noise}; time.sleep(0.01)")
    assert "owes an answer to a ping for " in linked(main, argv=argv, patience_s=0.2)


def test_a_host_that_floods_without_answering_is_lost_by_what_it_sent(monkeypatch):
    # No clock ends it: each answer is due in a year.
    monkeypatch.setattr(remote, "ANSWER_S", 3e7)

    async def main(link):
        process, _ = await started(link, "true")
        return await link.ended, await process.wait()

    why, code = linked(main, argv=hostile(DEAF_FLOOD))
    assert why == "host far: its agent sent more than 8 MiB before it answered a ping"
    assert code == remote.LOST


class Far:
    """A login to a host that answers some kinds of messages, and ends no command."""

    unsent = 0

    def __init__(self, **answers):
        self._answers, self._asked = answers, MessageReader(ASKED)
        self._said, self._killed = asyncio.Queue(), asyncio.Event()

    async def open(self, _):
        return b""

    def write(self, data):
        for name, fields, _ in self._asked.feed(data):
            if says := self._answers.get(name):
                more = {"time_s": EPOCH} if says == "pong" else {"pid": 7}
                self._said.put_nowait(packed(SAID, says, number=fields["number"], **more))

    async def read(self):
        return await self._said.get()

    async def last_words(self):
        return ""

    def kill(self):
        self._killed.set()

    async def close(self, *, at_once):
        await asyncio.wait(
            [asyncio.ensure_future(self._killed.wait())],
            timeout=login._HURRY_S if at_once else login._END_S,
        )


def far_link(loop, monkeypatch, **answers):
    """Return a link to such a host, in virtual time."""
    clocks = SimpleNamespace(monotonic=loop.time, time=lambda: EPOCH + loop.now)
    monkeypatch.setattr(remote, "time", clocks)
    link = RemoteHost("far", (), SshTarget("far"), {})
    link._login = Far(**answers)
    return link


def test_an_answer_that_does_not_come_before_later_pongs_is_a_lost_host(monkeypatch):
    async def main(loop):
        link = far_link(loop, monkeypatch, ping="pong")
        await link.open()
        with pytest.raises(HostError, match=r"owes an answer to ports\.is_own for "):
            async with asyncio.timeout(remote.ANSWER_S):
                await link.ask(ports, "is_own", "127.0.0.1")
        took_s = loop.now
        await link.close()
        return took_s

    assert remote.PROMPT_S <= run_virtual(main) <= remote.PROMPT_S + 3 * remote.PING_S


@pytest.mark.parametrize(
    "answers", [{}, {"start": "started"}, {"start": "started", "ping": "pong"}]
)
@pytest.mark.parametrize("late_s", [0.0, 0.95])
def test_whoever_hurries_waits_no_longer_than_three_seconds(answers, late_s, monkeypatch):
    async def main(loop):
        link = far_link(loop, monkeypatch, **answers)
        await link.open()
        process, _ = await started(link, "true")
        await asyncio.sleep(5.0 + late_s)
        began_s = loop.now
        link.hurry()
        code = await stop(process, "SIGINT", STOP_GRACE_S)
        await link.close()
        return code, loop.now - began_s

    code, took_s = run_virtual(main)
    assert code == remote.LOST
    assert took_s < 3.0


def test_what_is_killed_in_order_is_not_owed():
    async def main(link):
        link.hurry()
        for _ in range(3):
            process, _ = await started(link, "sleep", "1000")
            assert await stop(process, "SIGKILL", 0.0) == -signal.SIGKILL
        ended, _ = await started(link, "true")
        await ended.wait()
        await stop(ended, "SIGKILL", 0.0)
        return link._owed, await link.why_lost()

    assert linked(main) == ({}, "")


# --- plain shells, which say less ------------------------------------------------------------


@pytest.mark.parametrize(
    ("octets", "why"),
    [
        (b"a" * (MOST_HEAD + 1), "an answer of more than 1 MiB"),
        (b"1 0\nx\0" * 9 + b"a" * (MOST_HEAD + 1), "an answer of more than 1 MiB"),
        (b"\0", "."),
        (b"p1 0\n1e308\0", "."),
        (b"p1 0\n99999999999999\0", "pong: time_s"),
        (b"p0 0\n1\0", "pong: number"),
        (b"9 x\n\0", "."),
    ],
)
def test_what_is_no_answer_of_a_shell_is_refused(octets, why):
    with pytest.raises(ValueError, match=why):
        _Answers(PlainClock()).feed(octets)


# --- what is recorded there ----------------------------------------------------------------------


def recorder(tmp_path, most_bytes=1000):
    recording = HostCapture(Host("far", "192.0.2.1", reach=SshTarget("far")), "", 96, most_bytes)
    return HostRecorder(recording, tmp_path / "file", time.time)


@pytest.mark.parametrize(
    "line",
    [b"7", b"[]", b'{"event": "nothing"}', b'{"event": "end"}', b"x", b"[" * 5000,
     b'{"event": "end", "packets": NaN, "dropped": 0, "left_out": 0}', b"a" * 9000],
)  # fmt: skip
def test_a_recorder_that_says_anything_else_is_not_believed(line, tmp_path):
    with pytest.raises(OSError, match=r"what it says is not allowed|no line of a recorder"):
        recorder(tmp_path)._feed(Channel.STDOUT, line + b"\n")


def test_a_file_that_unpacks_to_far_more_than_was_asked_for_is_cut_off(tmp_path):
    one = recorder(tmp_path)
    one._feed(Channel.STDOUT, b'{"event": "file"}\n')
    with pytest.raises(OSError, match="more came than was asked for"):
        one._feed(Channel.STDOUT, zlib.compress(bytes(64 << 20)))
    one._coming.close()
    assert (tmp_path / "file").stat().st_size < 1 << 20


# --- floods -----------------------------------------------------------------------------------


def test_a_login_that_prints_without_an_end_is_named_and_ended():
    async def main(link):
        raise AssertionError(link)

    began = time.monotonic()
    with pytest.raises(HostError, match=r"runs no command before it has printed 1 MiB; .*: y$"):
        linked(main, argv=("yes",))
    assert time.monotonic() - began < login.START_S


def test_a_command_whose_link_is_flooded_is_bounded_in_memory():
    """In a process of its own, whose memory is only that of this link."""
    code = f"""
import asyncio, resource, sys
sys.path[:0] = {[str(Path(__file__).parents[2])]!r}
from hosts.linked import linked, started
from hosts.ssh.test_hostile import FLOOD, hostile
async def main(link):
    taken = 0
    def take(_, data):
        nonlocal taken
        taken += len(data)
    process = await link.start(("x",), {{}}, take)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    process.begin()
    while taken < 64 << 20:
        assert not link.lost, (link.lost, taken)
        await asyncio.sleep(0.01)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(linked(main, argv=hostile(FLOOD)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) * 1024 < 8 << 20


# A host without Python, whose shell prints without an end.
SHELL_FLOOD = r"""#!/bin/sh
for last; do :; done
case ${SSH_ORIGINAL_COMMAND:-$last} in *python3*) echo benchctl: none >&2; exit 97;; esac
read -r line
printf '\0benchctl agent 1\n'
exec yes
"""


def test_a_plain_shell_that_floods_without_an_end_is_lost_and_bounded_in_memory(tmp_path):
    """In a process of its own, whose memory is only that of this link."""
    code = f"""
import asyncio, resource, sys
sys.path[:0] = {[str(Path(__file__).parents[2])]!r}
from benchctl.hosts.hosts import Hosts
from benchctl.run.planned import Host, SshTarget
def most(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
async def main():
    async with Hosts(lock="benchctl-test-{os.getpid()}") as hosts:
        before = most()
        link = await hosts.link(Host("far", "192.0.2.1", reach=SshTarget("far")))
        print(await link.ended)
        print(most() - before)
asyncio.run(main())
"""
    ssh = tmp_path / "ssh"
    ssh.write_text(SHELL_FLOOD)
    ssh.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
    )  # fmt: skip
    why, grown = done.stdout.splitlines()
    assert why == ("host far: what its agent says is not allowed: an answer of more than 1 MiB")
    assert int(grown) * 1024 < 8 << 20


# Floods that answer no ping, and one that does.
DEAF_FLOOD = f"""
{PONGS}{STARTS}
while what == "begin":
    send('{{"is":"output","number":%d,"channel":1,"time_s":1.0}}' % m["number"], bytes(1 << 16))
"""
FLOOD = (
    PONGS
    + """
if what == "begin":
    import threading
    due = []
    threading.Thread(target=lambda: [due.append(m) for m in heard()], daemon=True).start()
    while True:
        while due: pong(due.pop(0))
        send('{"is":"output","number":1,"channel":1,"time_s":1.0}', bytes(1 << 16))
"""
)
