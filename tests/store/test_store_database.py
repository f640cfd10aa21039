"""Opening the store: one clear error for everything that can be wrong with a file."""

import errno
import re
import sqlite3
import subprocess
import sys
import textwrap
from contextlib import closing
from pathlib import Path

import pytest
from store.store_support import new_run
from waiting import COMMAND_S

from benchctl.errors import StoreBusyError, StoreError
from benchctl.store import database
from benchctl.store.copies.parcel import content_sha256
from benchctl.store.database import connect
from benchctl.store.manage import set_tags
from benchctl.store.read import Reader
from benchctl.store.record import Recorder
from benchctl.store.schema import ADDED, VERSION


@pytest.fixture
def store(tmp_path):
    return tmp_path / "runs.sqlite"


def refused(store, *, write, exit_code=4):
    """Return the error with which a store is not opened."""
    with pytest.raises(StoreError) as caught:
        connect(store, write=write)
    error = caught.value
    assert error.message.startswith(f"store {store}: ")
    assert "\n" not in error.message
    assert error.exit_code == exit_code
    return error


def test_a_store_is_made_with_its_directory_in_wal_mode(tmp_path):
    store = tmp_path / "not" / "there" / "runs.sqlite"
    with closing(connect(store, write=True)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
        assert connection.execute("PRAGMA user_version").fetchone()[0] == VERSION
    new_run(store)
    with closing(connect(store, write=True)) as connection:  # and only made once
        assert connection.execute("SELECT count(*) FROM run").fetchone()[0] == 1


OPENER = """
import sys
from contextlib import closing
from pathlib import Path
from benchctl.store.database import connect
print(flush=True)
sys.stdin.readline()
with closing(connect(Path(sys.argv[1]), write=True)) as connection:
    print(connection.execute("PRAGMA journal_mode").fetchone()[0],
          connection.execute("SELECT count(*) FROM run").fetchone()[0])
"""


def test_processes_that_make_the_store_at_the_same_moment_all_get_it(tmp_path):
    for turn in range(3):
        store = tmp_path / f"{turn}.sqlite"
        openers = [
            subprocess.Popen(
                [sys.executable, "-c", OPENER, str(store)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )
            for _ in range(3)
        ]  # fmt: skip
        for opener in openers:
            opener.stdout.readline()  # it has imported all it needs
        for opener in openers:
            opener.stdin.write("go\n")
            opener.stdin.flush()
        assert [opener.communicate(timeout=COMMAND_S) for opener in openers] == [
            ("wal 0\n", "")
        ] * 3


@pytest.mark.parametrize("write", [True, False])
def test_a_store_of_a_newer_benchctl_is_refused_and_left_alone(store, write):
    connect(store, write=True).close()
    with closing(sqlite3.connect(store)) as connection:
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    before = store.read_bytes()
    error = refused(store, write=write)
    assert f"written by a newer benchctl (format {VERSION + 1}, here {VERSION})" in error.message
    assert "update benchctl" in error.hint
    assert store.read_bytes() == before


@pytest.mark.parametrize("write", [True, False])
def test_another_programs_database_is_refused_and_left_alone(store, write):
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("CREATE TABLE bookmark (url)")
    before = store.read_bytes()
    assert "not a store of benchctl" in refused(store, write=write, exit_code=2).message
    assert store.read_bytes() == before
    assert not store.with_name(store.name + "-wal").exists()


def test_another_programs_database_of_our_version_is_refused(store):
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("CREATE TABLE bookmark (url)")
        connection.execute(f"PRAGMA user_version = {VERSION}")
    with closing(Reader(store)) as reader, pytest.raises(StoreError) as caught:
        reader.runs()
    assert "no such table: run" in caught.value.message
    assert "not a store" in caught.value.hint


@pytest.mark.parametrize("write", [True, False])
def test_a_file_that_is_no_database_is_refused(store, write):
    store.write_text("a letter to the editor, " * 100)
    assert "not a store" in refused(store, write=write, exit_code=2).message


def test_an_empty_file_has_no_runs_to_read(store):
    store.touch()
    assert "not a store" in refused(store, write=False, exit_code=2).message


def test_a_damaged_store_is_refused_when_its_pages_are_read(store):
    for _ in range(50):
        new_run(store, trials=50)
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    whole = bytearray(store.read_bytes())
    whole[4096 * 3 :] = b"\xa5" * (len(whole) - 4096 * 3)
    store.write_bytes(whole)
    with pytest.raises(StoreError) as caught, closing(Reader(store)) as reader:
        list(reader.trials(reader.runs()[0].id))
    assert "damaged: database disk image is malformed" in caught.value.message
    assert "benchctl store salvage" in caught.value.hint


@pytest.mark.parametrize("write", [True, False])
def test_a_directory_in_place_of_the_store_is_refused(store, write):
    store.mkdir()
    assert "this is a directory" in refused(store, write=write, exit_code=2).message


@pytest.mark.parametrize("write", [True, False])
def test_a_store_in_a_directory_that_may_not_be_entered_is_refused(store, write, monkeypatch):
    def forbidden(path, **_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "stat", forbidden)  # root may enter all
    assert "Permission denied" in refused(store, write=write).message


def test_a_store_below_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    assert "Not a directory" in refused(tmp_path / "file" / "runs.sqlite", write=False).message
    assert refused(tmp_path / "file" / "runs.sqlite", write=True)


def test_nothing_is_made_when_a_store_that_is_not_there_is_read(tmp_path):
    error = refused(tmp_path / "runs.sqlite", write=False, exit_code=2)
    assert "there are no runs yet" in error.message
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_another_program_holds_is_an_error_after_a_wait(store, monkeypatch):
    monkeypatch.setattr(database, "BUSY_TIMEOUT_S", 0.05)
    run_id, _ = new_run(store)
    with closing(sqlite3.connect(store, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusyError) as caught:
            new_run(store)
        assert "locked" in caught.value.message
        assert "another program has locked it" in caught.value.hint
        with closing(Reader(store)) as reader:  # which disturbs no reader
            assert reader.run(run_id).status == "planned"
        other.execute("ROLLBACK")


def fill(recorder):
    for _ in range(100):
        recorder.add_note("y" * 4096, "info", 0.0, None, None)
        recorder.flush()


def test_a_full_disk_is_an_error_that_leaves_the_store_whole(store, connections):
    run_id, _ = new_run(store)
    recorder = Recorder(store, run_id)
    [connection] = connections
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreError) as caught:
        fill(recorder)
    assert "full" in caught.value.message
    assert "free some space" in caught.value.hint
    with closing(Reader(store)) as reader:
        written = len(reader.notes(run_id))
    # Room again: the connection is not stuck in a transaction, and what was gathered is there.
    connection.execute("PRAGMA max_page_count = 100000")
    recorder.close()
    with closing(Reader(store)) as reader:
        assert len(reader.notes(run_id)) == written + 1


ON_A_SMALL_DISK = """
import sys
from pathlib import Path
from benchctl.errors import StoreBusyError, StoreError
sys.path.insert(0, sys.argv[2])
from store.store_support import new_run

try:
    for _ in range(100):
        new_run(Path(sys.argv[1]) / "runs.sqlite", trials=100)
except StoreError as error:
    print(error.message, error.hint, sep="\\n")
"""


@pytest.mark.netns
@pytest.mark.parametrize(
    ("options", "message", "hint"),
    [("size=256k", "full", "free some space"), ("ro", "unable to open", "is writable")],
    ids=["full", "read-only"],
)
def test_a_real_disk_that_is_full_or_read_only_gives_one_error(tmp_path, options, message, hint):
    script = textwrap.dedent(f"""
        mount -t tmpfs -o {options} none {tmp_path}
        exec {sys.executable} -c "$0" {tmp_path} "$1"
    """)
    tests = str(Path(__file__).parents[1])
    result = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-ec", script, ON_A_SMALL_DISK,
         tests],
        capture_output=True, text=True, check=True, timeout=COMMAND_S,
    )  # fmt: skip
    assert result.stderr == ""
    said = result.stdout.splitlines()
    assert len(said) == 2, "one error, with one hint"
    assert message in said[0]
    assert hint in said[1]


def test_no_statement_numbers_its_parameters():
    # Python 3.12.0 to 3.12.3 warn where a sequence is bound to ?1 as to a name.
    for path in Path(database.__file__).parent.glob("*.py"):
        assert not re.search(r"\?\d", path.read_text()), path


def as_0_1_0_left_it(store):
    """Take away what was added to stores since."""
    with closing(sqlite3.connect(store, isolation_level=None)) as connection:
        connection.execute("DROP INDEX trial_of_file")
        for table, column, _ in ADDED:
            connection.execute(f"ALTER TABLE {table} DROP COLUMN {column}")


COUNTS = ("arrived", "delivered", "dropped", "lost", "queued")
UNCOUNTED = ("queue_max", "late", "missed", "refused", "late_max_s")
LINK = {
    "link": "far", "from": "a", "to": "b", "kept": True,
    **dict.fromkeys(COUNTS, 1), **dict.fromkeys(UNCOUNTED),
}  # fmt: skip


def test_a_store_of_version_0_1_0_is_read_as_it_is_and_completed_when_written(store):
    run_id, _ = new_run(store)
    as_0_1_0_left_it(store)
    with closing(Reader(store)) as reader:
        (trial,) = reader.trials(run_id)
        assert (trial.point, trial.links) == ({"n": 0}, ())
    with closing(Recorder(store, run_id)) as recorder, closing(Reader(store)) as reader:
        assert next(reader.trials(run_id)).links == ()
        recorder.update_trial(trial.id, links=[LINK])
        assert next(reader.trials(run_id)).links == (LINK,)


def test_tables_and_indexes_that_came_later_are_made_when_a_store_is_written(store):
    new_run(store)
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("DROP INDEX note_of_run")
        connection.execute("DROP TABLE note")
        connection.execute("DROP TABLE event")
    with closing(Reader(store)) as reader:
        assert reader.run(1).name
        assert reader.events(1) == []
    set_tags(store, 1, ["old"])
    with closing(Reader(store)) as reader:
        assert (reader.run(1).tags, reader.notes(1)) == (("old",), [])


def test_a_run_has_the_hash_that_a_program_without_a_later_table_gave_it(store):
    run_id, _ = new_run(store)
    now = content_sha256(store)
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("DROP TABLE host")
    assert content_sha256(store) == now
    with closing(Recorder(store, run_id)) as recorder:
        recorder.update_host("oslo", {"kernel": "6.1"})
    assert content_sha256(store) != now
