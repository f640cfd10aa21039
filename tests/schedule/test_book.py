"""The files of schedules: written whole, read with care."""

import pytest

from benchctl.errors import StoreError, UsageError
from benchctl.schedule.book import Book, LogEntry, Schedule, What, handled_until
from benchctl.schedule.times import Recurrence


@pytest.fixture
def book(tmp_path):
    return Book(tmp_path / "runs.sqlite")


def schedule(name="nightly"):
    return Schedule(name, "/p.toml", Recurrence(3600.0, 1000.0))


def test_schedules_and_their_log_are_read_as_written(book):
    assert (book.schedules(), book.entries()) == ({}, [])
    book.add(schedule("b"))
    book.add(schedule("a"))
    entry = LogEntry(What.CHANGE, 5.0, "a", run="r", figures=({"metric": "rtt_s"},))
    book.write(entry)
    assert [*book.schedules()] == ["a", "b"]
    assert book.entries() == [entry]
    book.remove("a")
    assert [*book.schedules()] == ["b"]
    with pytest.raises(UsageError, match='no schedule "a"'):
        book.remove("a")
    with pytest.raises(UsageError, match='there is a schedule "b"'):
        book.add(schedule("b"))


def test_files_are_private(book):
    book.add(schedule())
    modes = {file.stat().st_mode & 0o777 for file in book.store.parent.iterdir()}
    assert modes == {0o600}


def test_a_line_that_a_crash_cut_off_is_lost_alone(book):
    one, two = (LogEntry(What.MISSED, float(n), "a", due_time=1.0, count=1) for n in (1, 2))
    book.write(one)
    log = book.store.with_name("runs.sqlite.schedules.jsonl")
    log.write_bytes(log.read_bytes() + b'{"time":2,"sched')
    assert book.entries() == [one]
    book.write(two)
    assert book.entries() == [one, two]


def test_a_file_that_somebody_changed_is_named(book):
    book.add(schedule())
    file = book.store.with_name("runs.sqlite.schedules.json")
    file.write_text(file.read_text().replace("nightly", "../x"))
    with pytest.raises(StoreError, match=r"schedules\.json"):
        book.schedules()


def test_one_process_works_at_a_time(book):
    with book.working() as first, Book(book.store).working() as second:
        assert (first, second) == (True, False)
    with book.working() as again:
        assert again


def test_due_times_are_handled_from_the_beginning_on():
    entries = [
        LogEntry(What.STARTED, 1.0, "nightly", due_time=4600.0),
        LogEntry(What.MISSED, 1.0, "nightly", due_time=8200.0, until_time=11800.0, count=2),
        LogEntry(What.STARTED, 1.0, "other", due_time=99999.0),
    ]
    assert handled_until(schedule(), []) == 1000.0
    assert handled_until(schedule(), entries) == 11800.0
