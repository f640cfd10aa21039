"""The log of commands: what it says of each, as text and as JSON, and what it never says."""

import asyncio
import json
import stat
import time

import pytest
from waiting import DEADLINE_S

from benchctl.errors import UsageError
from benchctl.hosts.local.spawn import LocalSpawner, run
from benchctl.hosts.log import CommandLog, command_log
from benchctl.run.planned import LOCAL

ARGV = ("iperf3", "-c", "a b")


def clock(*times):
    ticks = iter(times)
    return lambda: next(ticks)


@pytest.fixture(autouse=True)
def zone(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Europe/Paris")
        time.tzset()
        yield
    time.tzset()


def test_a_start_and_an_end_are_a_line_each_in_local_time(tmp_path):
    log = CommandLog(tmp_path / "log", clock=clock(1795218977.5, 1795218987.6))
    log.started("h1", ARGV, 4711)(3)
    assert (tmp_path / "log").read_text().splitlines() == [
        "2026-11-21 00:56:17.500 h1 4711 starts: iperf3 -c 'a b'",
        "2026-11-21 00:56:27.600 h1 4711 ends with exit code 3 after 10.1 s: iperf3 -c 'a b'",
    ]


def test_in_json_a_time_has_its_offset_and_a_command_its_words(tmp_path):
    log = CommandLog(tmp_path / "log", as_json=True, clock=clock(1795218977.5, 1795218978.0))
    log.started("h1", ARGV, 4711)(-9)
    started, ended = map(json.loads, (tmp_path / "log").read_text().splitlines())
    assert started == {
        "time": "2026-11-21T00:56:17.500+01:00",
        "event": "started",
        "host": "h1",
        "pid": 4711,
        "command": ["iperf3", "-c", "a b"],
    }
    assert (ended["event"], ended["exit_code"], ended["duration_s"]) == ("ended", -9, 0.5)


def test_a_command_may_have_percent_signs(tmp_path):
    CommandLog(tmp_path / "log").started("h1", ["printf", "%s%d"], 1)(0)
    first, second = (tmp_path / "log").read_text().splitlines()
    assert first.endswith("starts: printf %s%d")
    assert second.endswith(": printf %s%d")


def test_a_command_cannot_forge_a_line(tmp_path):
    CommandLog(tmp_path / "log").started("h1", ["x", "\n2026-01-01 h2 1 starts: y\x1b[2J"], 1)
    (line,) = (tmp_path / "log").read_text().splitlines()
    assert "\x1b" not in line


def test_the_log_is_appended_to_and_is_private(tmp_path):
    CommandLog(tmp_path / "log").started("h1", ARGV, 1)
    CommandLog(tmp_path / "log").started("h1", ARGV, 2)
    assert len((tmp_path / "log").read_text().splitlines()) == 2
    assert stat.S_IMODE((tmp_path / "log").stat().st_mode) == 0o600


def test_a_log_that_cannot_be_written_is_an_error_at_once(tmp_path):
    with pytest.raises(UsageError, match=r"log .*: No such file or directory"):
        CommandLog(tmp_path / "none" / "log")


def test_what_a_spawner_starts_is_logged_without_its_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("BENCHCTL_LOG", str(tmp_path / "log"))
    command_log.cache_clear()

    async def main():
        async with LocalSpawner() as spawner:
            process = await spawner.start(
                LOCAL, ["sh", "-c", "exit 3"], {"IPERF3_PASSWORD": "geheim"}, lambda *_: None
            )
            assert not (tmp_path / "log").read_text()  # it waits at its gate
            process.begin()
            await process.wait()
            await run(spawner, LOCAL, ["true"], DEADLINE_S)

    try:
        asyncio.run(main())
    finally:
        command_log.cache_clear()
    text = (tmp_path / "log").read_text()
    assert "geheim" not in text
    assert [line.split(" ", 4)[4].partition(" after")[0] for line in text.splitlines()] == [
        "starts: sh -c 'exit 3'", "ends with exit code 3", "starts: true", "ends with exit code 0",
    ]  # fmt: skip
