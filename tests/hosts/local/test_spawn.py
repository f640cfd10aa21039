import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import threading

import pytest
from hosts.linked import has_ended
from waiting import DEADLINE_S, until

from benchctl.api import Channel
from benchctl.hosts.local import spawn
from benchctl.hosts.local.spawn import LocalSpawner, run, stop
from benchctl.hosts.sent import guardian
from benchctl.run.planned import LOCAL, Host


def spawned(main):
    async def wrapped():
        async with LocalSpawner() as spawner:
            return await main(spawner)

    return asyncio.run(wrapped())


async def start(spawner, *argv, host=LOCAL):
    output = []
    process = await spawner.start(
        host, argv, {}, lambda channel, data: output.append((channel, data))
    )
    return process, output


linux_only = pytest.mark.skipif(sys.platform != "linux", reason="waits by pidfd")


def test_two_spawners_of_one_process_wait_each_for_its_own_children():
    async def main(spawner):
        process, _ = await start(spawner, "true")
        async with LocalSpawner():
            process.begin()
            return await asyncio.wait_for(process.wait(), DEADLINE_S)

    assert spawned(main) == 0


def test_two_threads_wait_each_for_its_own_children():
    begun = threading.Barrier(2, timeout=DEADLINE_S)
    codes = []

    async def main(spawner):
        process, _ = await start(spawner, "true")
        await asyncio.to_thread(begun.wait)  # both loops are running, and both have a child
        process.begin()
        codes.append(await asyncio.wait_for(process.wait(), DEADLINE_S))

    threads = [threading.Thread(target=spawned, args=(main,), daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE_S)
    assert codes == [0, 0]


def test_a_command_waits_at_its_gate(tmp_path):
    made = tmp_path / "made"

    async def main(spawner):
        process, _ = await start(spawner, "touch", str(made))
        other, _ = await start(spawner, "true")
        other.begin()
        await other.wait()
        before = made.exists()
        process.begin()
        return before, await process.wait(), made.exists()

    assert spawned(main) == (False, 0, True)


def test_output_and_exit_code_are_delivered_before_the_wait_ends():
    async def main(spawner):
        process, output = await start(spawner, "sh", "-c", "echo out; echo err >&2; exit 7")
        process.begin()
        return await process.wait(), sorted(output)

    assert spawned(main) == (7, [(Channel.STDERR, b"err\n"), (Channel.STDOUT, b"out\n")])


@linux_only
def test_no_thread_waits_for_a_command():
    async def main(spawner):
        process, _ = await start(spawner, "true")
        more = {*threading.enumerate()} - before
        process.begin()
        return more, await process.wait()

    before = {*threading.enumerate()}
    assert spawned(main) == (set(), 0)


def test_a_host_puts_its_words_before_the_command():
    there = Host("there", "127.0.0.1", prefix=("env", "WHERE=there"))

    async def main(spawner):
        return await run(spawner, there, ["sh", "-c", "echo $WHERE $LC_ALL"], DEADLINE_S)

    assert spawned(main) == (0, "there C\n")


@linux_only
def test_a_signal_reaches_everything_the_command_started():
    async def main(spawner):
        process, output = await start(spawner, "sh", "-c", "sleep 60 & echo $!; wait")
        process.begin()
        await until(lambda: output)
        code = await stop(process, "SIGTERM", grace_s=DEADLINE_S)
        return code, has_ended(int(output[0][1]))

    assert spawned(main) == (-signal.SIGTERM, True)


def test_a_command_that_ignores_its_signal_is_killed():
    async def main(spawner):
        process, output = await start(
            spawner, "sh", "-c", "trap '' INT; echo ready; sleep 60; sleep 60"
        )
        process.begin()
        await until(lambda: output)
        return await stop(process, "SIGINT", grace_s=0.05)

    assert spawned(main) == -signal.SIGKILL


@linux_only
def test_a_child_left_behind_does_not_hold_up_the_end(monkeypatch):
    monkeypatch.setattr(spawn, "DRAIN_S", 0.05)

    async def main(spawner):
        process, output = await start(spawner, "sh", "-c", "sleep 60 & echo $!")
        process.begin()
        return await process.wait(), has_ended(int(output[0][1]))

    assert spawned(main) == (0, True)


def test_a_command_that_nobody_waited_for_has_ended_with_its_spawner():
    left = []

    async def main(spawner):
        process, _ = await start(spawner, "sleep", "100")
        process.begin()
        left.append(process.pid)

    spawned(main)
    with pytest.raises(ProcessLookupError):
        os.kill(left[0], 0)


def test_a_probe_that_hangs_is_ended():
    async def main(spawner):
        with pytest.raises(TimeoutError):
            await run(spawner, LOCAL, ["sleep", "60"], 0.05)

    spawned(main)


RUNNER = textwrap.dedent("""
    import asyncio, sys
    from benchctl.run.planned import LOCAL
    from benchctl.hosts.local.spawn import LocalSpawner

    async def main():
        async with LocalSpawner() as spawner:
            begun = await spawner.start(LOCAL, ["sh", "-c", sys.argv[1]], {}, lambda *_: None)
            held = await spawner.start(LOCAL, ["touch", sys.argv[2]], {}, lambda *_: None)
            begun.begin()
            print(begun.pid, held.pid, flush=True)
            await asyncio.sleep(60)

    asyncio.run(main())
""")


@pytest.mark.parametrize("refusal", [ProcessLookupError, PermissionError])
def test_a_group_that_has_ended_keeps_no_other_from_being_killed(monkeypatch, refusal):
    """macOS reports EPERM of a group that has only zombies."""
    asked = []

    def killpg(group, number):
        asked.append(group)
        if len(asked) == 1:
            raise refusal

    monkeypatch.setattr("os.killpg", killpg)
    guardian.end_left([b"+7\n", b"+8\n", b"+9\n", b"-8\n"])
    assert sorted(asked) == [7, 9]


@linux_only
@pytest.mark.parametrize("clear", ["", "setpriv --pdeathsig clear "])
def test_nothing_outlives_a_runner_that_was_killed(tmp_path, clear):
    # Without the kernel's signal, as for programs with capabilities, the guardian does it.
    made = tmp_path / "made"
    runner = subprocess.Popen(
        [sys.executable, "-c", RUNNER, f"exec {clear}sleep 60", str(made)], stdout=subprocess.PIPE
    )
    pids = [int(pid) for pid in runner.stdout.readline().split()]
    runner.kill()
    runner.wait()
    assert all(has_ended(pid) for pid in pids)
    assert not made.exists()
    runner.stdout.close()


def test_a_short_command_that_prints_without_an_end_is_ended():
    async def main(spawner):
        with pytest.raises(OSError, match="it prints more than 1 MiB"):
            await run(spawner, LOCAL, ("yes",), DEADLINE_S)

    spawned(main)
