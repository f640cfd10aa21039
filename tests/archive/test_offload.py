"""Samples of old months move to Parquet files, and come back from there."""

from contextlib import contextmanager

import psycopg
import pytest
from archive.archive_support import opened_as, pulled, pushed
from archive.test_push_and_pull import exported
from store.store_support import FIVE_MBIT, measured_run

from benchctl.archive.months import months
from benchctl.archive.parquet import months_before, offload
from benchctl.archive.push import PushOutcome
from benchctl.archive.schema import WRITER
from benchctl.errors import ArchiveError, UsageError
from benchctl.store.manage import add_remark

pytestmark = pytest.mark.postgres
OLD, NEW = 1_790_000_000.0, 1_795_225_512.0
"""In September and November 2026."""


@pytest.fixture
def store(tmp_path):
    return tmp_path / "runs.sqlite"


@pytest.fixture
def names(archive, store):
    """Runs of two old months, and a new one."""
    made = [
        measured_run(store, {1: FIVE_MBIT}, intervals=intervals, now=now)
        for intervals, now in ((3, OLD), (2, OLD + 10), (0, OLD + 20), (4, NEW))
    ]
    for name in made:
        pushed(archive, store, name)
    return made


def test_a_run_is_pulled_from_the_archive_and_its_file_as_it_was(archive, store, names, tmp_path):
    (month,) = months_before(archive, months(archive)[0].month)
    file = offload(archive, month, tmp_path)
    assert file == tmp_path / "benchctl-samples-2026-09.parquet"
    assert not months_before(archive, months(archive)[0].month)
    told = [(one.runs, one.samples, one.size_bytes > 0, one.files) for one in months(archive)]
    assert told == [(1, 20, True, ()), (3, 25, False, (file.name,))]
    assert archive.rows("SELECT count(*) FROM benchctl.figures") == [(20,)]
    for name in names:
        other = tmp_path / f"{name}.sqlite"
        assert pulled(archive, other, name, tmp_path)
        assert exported(other, name) == exported(store, name)
        assert pushed(archive, store, name) is PushOutcome.SAME


def test_what_a_killed_offload_left_is_in_nobodys_way(archive, names, tmp_path):
    month = months(archive)[1].month
    part = tmp_path / "benchctl-samples-2026-09.parquet.part"
    part.write_bytes(b"cut off")
    offload(archive, month, tmp_path)
    assert not part.exists()
    assert pulled(archive, tmp_path / "other.sqlite", names[0], tmp_path)


def test_others_read_the_file(archive, names, tmp_path):
    import duckdb

    file = offload(archive, months(archive)[1].month, tmp_path)
    found = duckdb.sql(f"SELECT run, sum(len(ends_s)) FROM '{file}' GROUP BY run")
    assert sorted(count for _, count in found.fetchall()) == [10, 15]


def test_without_its_file_a_run_is_not_pulled(archive, names, tmp_path):
    file = offload(archive, months(archive)[1].month, tmp_path)
    other = tmp_path / "other.sqlite"
    with pytest.raises(UsageError, match="were moved to benchctl-samples-2026-09"):
        pulled(archive, other, names[0])
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="which is not in"):
        pulled(archive, other, names[0], tmp_path / "empty")
    file.write_bytes(b"PAR1 nonsense")
    with pytest.raises(ArchiveError, match=str(file)):
        pulled(archive, other, names[0], tmp_path)
    assert not other.exists()


def test_what_comes_to_a_month_later_has_a_file_of_its_own(archive, store, names, tmp_path):
    month = months(archive)[1].month
    offload(archive, month, tmp_path)
    add_remark(store, 1, "it rained", 1e9)
    assert pushed(archive, store, names[0]) is PushOutcome.REPLACED
    assert pulled(archive, tmp_path / "other.sqlite", names[0])
    second = offload(archive, month, tmp_path)
    assert second.name == "benchctl-samples-2026-09.2.parquet"
    for name in names[:2]:
        assert pulled(archive, tmp_path / f"{name}.sqlite", name, tmp_path)


def test_a_month_that_is_not_whole_stays(archive, store, names, tmp_path):
    archive.rows("UPDATE benchctl_data.piece SET values[1] = 7 RETURNING 1")
    with pytest.raises(ArchiveError, match="is not what was pushed"):
        offload(archive, months(archive)[1].month, tmp_path)
    assert months(archive)[1].files == ()
    assert archive.rows("SELECT count(*) FROM benchctl.samples") == [(45,)]
    assert not [*tmp_path.glob("*.parquet*")]


def test_the_file_stays_if_nobody_knows_whether_the_server_committed(
    archive, names, tmp_path, monkeypatch
):
    whole = archive.connection.transaction

    @contextmanager
    def cut_off():
        with whole():
            yield
        raise psycopg.OperationalError("the connection is lost")

    monkeypatch.setattr(archive.connection, "transaction", cut_off)
    with pytest.raises(ArchiveError, match="the connection is lost"):
        offload(archive, months(archive)[1].month, tmp_path)
    monkeypatch.undo()
    assert months(archive)[1].files == ("benchctl-samples-2026-09.parquet",)
    assert pulled(archive, tmp_path / "other.sqlite", names[0], tmp_path)


def test_only_the_owner_moves_samples(archive_url, names, tmp_path):
    with opened_as(archive_url, WRITER) as theirs:
        with pytest.raises(ArchiveError, match=r"must be owner|permission denied"):
            offload(theirs, months(theirs)[1].month, tmp_path)
        assert months(theirs)[1].files == ()
    assert not [*tmp_path.glob("*.parquet*")]
