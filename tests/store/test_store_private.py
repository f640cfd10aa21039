"""Only its owner can read a store, unless the owner permits others, who can then read it."""

import os
import shutil
import subprocess
import tempfile
from contextlib import closing
from pathlib import Path

import pytest
from lab.lab_support import ordinary_user
from store.store_support import new_run

from benchctl.store.locks import Liveness
from benchctl.store.read import Reader

READ = """
import sys
from pathlib import Path
from benchctl.errors import BenchctlError
from benchctl.store.read import Reader
try:
    reader = Reader(Path(sys.argv[1]))
    print(*(run.name for run in reader.runs()))
    print(*(trial.position for run in reader.runs() for trial in reader.trials(run.id)))
    print(*(reader.is_alive(run) for run in reader.runs()))
    reader.close()
except BenchctlError as error:
    print(error.message, error.hint, sep="; ")
"""


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_a_store_and_its_files_are_their_owners_alone(mask, tmp_path):
    store = tmp_path / "runs.sqlite"
    before = os.umask(mask)
    try:
        run_id, _ = new_run(store)
        with Liveness(store).hold(run_id), closing(Reader(store)) as reader:
            reader.runs()
            modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    finally:
        os.umask(before)
    files = ("runs.sqlite", "runs.sqlite-wal", "runs.sqlite-shm", "runs.sqlite-alive")
    assert modes == dict.fromkeys(files, 0o600)


def test_a_store_that_its_owner_shares_stays_shared(tmp_path):
    store = tmp_path / "runs.sqlite"
    new_run(store)
    store.chmod(0o640)
    new_run(store)
    assert store.stat().st_mode & 0o777 == 0o640


@pytest.fixture
def archive():
    """A directory with a store, in which another user, or its owner, may write nothing."""
    directory = Path(tempfile.mkdtemp())  # not under tmp_path, which only its owner may enter
    yield directory
    directory.chmod(0o755)
    shutil.rmtree(directory)


def read_as_a_reader(directory):
    for path in directory.iterdir():
        path.chmod(0o444)
    directory.chmod(0o555)
    words = ordinary_user()
    if not words:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("no Python that others can run")
    names = sorted(path.name for path in directory.iterdir())
    result = subprocess.run(
        [*words, "-c", READ, str(directory / "a b?#%.sqlite")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert sorted(path.name for path in directory.iterdir()) == names
    return result.stdout.splitlines()


def test_an_archive_that_nobody_may_write_is_read(archive):
    _, name = new_run(archive / "a b?#%.sqlite", trials=3)
    assert read_as_a_reader(archive) == [name, "0 1 2", "False"]


def test_a_store_that_its_owner_writes_now_is_read(archive):
    store = archive / "a b?#%.sqlite"
    run_id, name = new_run(store)
    with closing(Reader(store)), Liveness(store).hold(run_id):
        _, second = new_run(store)  # only in the log so far
        assert read_as_a_reader(archive) == [f"{second} {name}", "0 0", "False True"]


def test_a_store_whose_last_words_would_go_unread_is_refused(archive, tmp_path):
    store = tmp_path / "runs.sqlite"
    new_run(store)
    with closing(Reader(store)):
        new_run(store)
        for ending in ("", "-wal"):
            shutil.copy(f"{store}{ending}", archive / f"a b?#%.sqlite{ending}")
    (said,) = read_as_a_reader(archive)
    assert "was not closed, and a b?#%.sqlite-wal holds the latest data" in said
    assert "copy both files" in said


def test_reading_makes_no_store(tmp_path):
    with pytest.raises(Exception, match="there are no runs yet"):
        Reader(tmp_path / "runs.sqlite")
    assert list(tmp_path.iterdir()) == []
