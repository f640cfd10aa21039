"""An archive that is away, full, slow, old, or used by several at once, and who may do what."""

import os
import signal
import threading
from contextlib import closing

import psycopg
import pytest
from archive.archive_support import opened_as, pulled, pushed
from store.store_support import FIVE_MBIT, measured_run

from benchctl.archive import init, schema
from benchctl.archive.connection import open_archive
from benchctl.archive.push import PushOutcome, push
from benchctl.errors import ArchiveAwayError, ArchiveError, UsageError
from benchctl.store.manage import add_remark
from benchctl.store.read import Reader

pytestmark = pytest.mark.postgres


@pytest.fixture
def store(tmp_path):
    path = tmp_path / "runs.sqlite"
    measured_run(path, {1: FIVE_MBIT}, intervals=3)
    return path


def everything(archive_url):
    """Return all rows of an archive."""
    tables = ("run", "subject", "figure", "flow", "host", "piece")
    with psycopg.connect(archive_url) as connection:
        return {
            table: connection.execute(f"SELECT * FROM benchctl_data.{table}").fetchall()
            for table in tables
        }


class Killed:
    """A connection whose server process is killed before one of its statements."""

    def __init__(self, connection, archive_url, at):
        self._connection, self._url, self._left = connection, archive_url, at

    def __getattr__(self, name):
        if name in ("execute", "cursor"):
            self._left -= 1
            if self._left == 0:
                pid = self._connection.info.backend_pid
                with psycopg.connect(self._url) as other:
                    other.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))
        return getattr(self._connection, name)

    @property
    def was_killed(self):
        return self._left <= 0


def test_a_push_that_is_cut_off_at_any_statement_leaves_all_as_it_was(archive_url, store):
    with open_archive(archive_url) as archive:
        pushed(archive, store)
    add_remark(store, 1, "it rained", 1e9)
    before, at, was_killed = everything(archive_url), 0, True
    while was_killed:
        at += 1
        with open_archive(archive_url) as archive:
            archive.connection = killed = Killed(archive.connection, archive_url, at)
            if was_killed := (outcome := _outcome(archive, store)) is None:
                assert everything(archive_url) == before
            assert was_killed == killed.was_killed
    assert at > 10
    assert outcome is PushOutcome.REPLACED
    assert everything(archive_url)["run"] != before["run"]


def _outcome(archive, store):
    try:
        return pushed(archive, store)
    except ArchiveAwayError:
        return None


def test_two_pushers_of_one_run_bring_it_once(archive_url, store, tmp_path):
    both, outcomes = threading.Barrier(2), []

    def bring():
        with open_archive(archive_url) as archive, closing(Reader(store)) as reader:
            run = reader.find("last")
            both.wait()
            outcomes.append(push(archive, reader, run))

    pushers = [threading.Thread(target=bring) for _ in range(2)]
    for one in pushers:
        one.start()
    for one in pushers:
        one.join()
    assert sorted(outcomes) == sorted([PushOutcome.NEW, PushOutcome.SAME])
    with open_archive(archive_url) as archive:
        assert pulled(archive, tmp_path / "other.sqlite")


def spoil(archive_url, statement):
    """Let each row of a figure meet a statement on its way in."""
    with psycopg.connect(archive_url) as connection:
        connection.execute(
            "CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS"
            f" 'BEGIN {statement}; RETURN NEW; END'"
        )
        connection.execute(
            "CREATE TRIGGER spoil BEFORE INSERT ON benchctl_data.figure FOR EACH ROW"
            " EXECUTE FUNCTION spoil()"
        )


@pytest.mark.parametrize(
    ("statement", "message", "hint"),
    [
        (
            "RAISE EXCEPTION ''could not extend file'' USING ERRCODE = ''disk_full''",
            "could not extend file",
            "its disk is full; the runs are in the store",
        ),
        ("PERFORM pg_sleep(60)", "statement timeout", "it is too slow"),
        ("RAISE EXCEPTION ''going'' USING ERRCODE = ''admin_shutdown''", "going", "is it running"),
    ],
)
def test_a_full_slow_or_ending_archive_is_one_line_and_keeps_nothing_of_the_run(
    archive_url, store, statement, message, hint
):
    spoil(archive_url, statement)
    with (
        pytest.raises(ArchiveError, match=message) as caught,
        open_archive(archive_url, statement_s=0.2) as archive,
    ):
        pushed(archive, store)
    assert caught.value.hint.startswith(hint)
    assert "\n" not in caught.value.message
    assert not any(everything(archive_url).values())


def test_a_server_that_hangs_is_not_waited_for(archive_url, store, monkeypatch):
    monkeypatch.setattr("benchctl.archive.connection.SLACK_S", 0.3)
    with open_archive(archive_url, statement_s=0.2) as archive:
        pid = archive.connection.info.backend_pid
        os.kill(pid, signal.SIGSTOP)
        try:
            with pytest.raises(ArchiveAwayError, match=r"no answer for 0\.5 s"):
                pushed(archive, store)
        finally:
            os.kill(pid, signal.SIGCONT)
    with open_archive(archive_url) as archive:
        assert pushed(archive, store) is PushOutcome.NEW


@pytest.mark.parametrize(
    "url", ["postgresql://u:secret@127.0.0.1:1/bench", "host=/nowhere password=secret dbname=bench"]
)
def test_an_archive_that_is_away_is_named_without_its_password(url):
    with pytest.raises(ArchiveAwayError, match="archive bench on ") as caught, open_archive(url):
        pass
    assert "secret" not in caught.value.message + caught.value.hint


@pytest.mark.parametrize("url", ["postgresql://u:secret@[/x", "host=x password='secret", "secret"])
def test_what_is_no_url_is_not_repeated(url):
    with pytest.raises(UsageError, match="no URL of a PostgreSQL") as caught, open_archive(url):
        pass
    assert "secret" not in caught.value.message + caught.value.hint


def test_a_database_without_an_archive_says_how_to_make_one(new_database):
    with (
        pytest.raises(ArchiveError, match="has no archive") as caught,
        open_archive(new_database()),
    ):
        pass
    assert caught.value.hint == "make it: benchctl archive init URL"


def test_a_reader_reads_everything_and_writes_nothing(archive_url, archive, store, tmp_path):
    pushed(archive, store)
    with opened_as(archive_url, schema.READER) as theirs:
        assert pulled(theirs, tmp_path / "other.sqlite")
        assert theirs.rows("SELECT count(*) FROM benchctl.samples") == [(15,)]
        tables = theirs.rows(
            "SELECT schemaname || '.' || tablename FROM pg_tables WHERE schemaname LIKE 'benchctl%'"
        )
        assert len(tables) == 8
        statements = [
            f"{do} {table}"
            for (table,) in tables
            for do in ("DELETE FROM", "TRUNCATE", "DROP TABLE")
        ]
        statements += [f"INSERT INTO {table} DEFAULT VALUES" for (table,) in tables]
        statements += [
            "UPDATE benchctl_data.run SET name = 'x'",
            "UPDATE benchctl_data.archive SET version = 7",
            "UPDATE benchctl.runs SET name = 'x'",
            "SELECT benchctl_data.add_month('2020-01-01')",
            "CREATE TABLE benchctl.more (x int)",
            "CREATE TABLE benchctl_data.more (x int)",
            "CREATE TABLE public.more (x int)",
            "CREATE SCHEMA more",
        ]
        for statement in statements:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                theirs.connection.execute(statement)
        add_remark(store, 1, "it rained", 1e9)
        with pytest.raises(ArchiveError, match="permission denied") as caught:
            pushed(theirs, store)
    assert "benchctl_writer" in caught.value.hint


def test_a_writer_pushes_and_replaces_and_changes_no_table(archive_url, store):
    with opened_as(archive_url, schema.WRITER) as theirs:
        assert pushed(theirs, store) is PushOutcome.NEW
        add_remark(store, 1, "it rained", 1e9)
        assert pushed(theirs, store) is PushOutcome.REPLACED
        assert theirs.rows("SELECT pushed_by FROM benchctl.runs") == [("some_benchctl_writer",)]
        for statement in (
            "UPDATE benchctl_data.archive SET version = 7",
            "DROP TABLE benchctl_data.piece_2026_11",
            "ALTER TABLE benchctl_data.run ADD x int",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                theirs.connection.execute(statement)


@pytest.fixture
def next_version(monkeypatch):
    """A benchctl whose tables are of version 2."""

    def use(statements):
        monkeypatch.setattr(init, "VERSION", 2)
        monkeypatch.setattr("benchctl.archive.connection.VERSION", 2)
        monkeypatch.setattr(init, "UPGRADES", (statements,))

    return use


def version_after(archive_url, agree):
    with open_archive(archive_url, any_version=True) as archive:
        init.init(archive, agree)
        return archive.version()


def test_tables_of_an_older_version_are_upgraded_in_one_transaction_on_request(
    archive_url, store, next_version
):
    with open_archive(archive_url) as archive:
        pushed(archive, store)
    before = everything(archive_url)
    next_version("ALTER TABLE benchctl_data.run ADD extra text; SELECT 1 / 0")
    with (
        pytest.raises(ArchiveError, match="made by older benchctl") as caught,
        open_archive(archive_url),
    ):
        pass
    assert caught.value.hint == "upgrade it: benchctl archive init URL"
    assert version_after(archive_url, lambda _: False) == 1
    with pytest.raises(ArchiveError, match="division by zero"):
        version_after(archive_url, lambda _: True)
    assert everything(archive_url) == before
    next_version("ALTER TABLE benchctl_data.run ADD extra text")
    asked = []
    assert version_after(archive_url, lambda version: asked.append(version) or True) == 2
    assert asked == [1]
    with open_archive(archive_url) as archive:
        assert archive.rows("SELECT count(*) FROM benchctl.samples") == [(15,)]
        assert pushed(archive, store) is PushOutcome.SAME


def test_an_archive_of_a_newer_version_is_left_alone(archive_url, store):
    with psycopg.connect(archive_url) as connection:
        connection.execute("UPDATE benchctl_data.archive SET version = 99")
    for any_version in (False, True):
        with (
            pytest.raises(ArchiveError, match=r"newer benchctl \(format 99, here 1\)"),
            open_archive(archive_url, any_version=any_version) as archive,
        ):
            init.init(archive, lambda _: True)
