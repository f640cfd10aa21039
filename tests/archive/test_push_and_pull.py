"""What is pushed comes back as it was, and the newest revision stays."""

from contextlib import closing

import pytest
from archive.archive_support import pulled, pushed
from report.mesh_run import mesh_run
from report.whole import whole
from store.store_support import FIVE_MBIT, add_flow, add_sample, figures, measured_run, new_run

from benchctl.archive.pull import archived_runs, find
from benchctl.archive.push import PushOutcome, missing
from benchctl.errors import ArchiveError, StoreError, UsageError
from benchctl.report.report import StoredRun
from benchctl.run.record import BASELINE
from benchctl.store.copies.parcel import MOST_SAMPLES
from benchctl.store.manage import add_remark, set_tags
from benchctl.store.read import Reader
from benchctl.store.record import Recorder, reopen_run

pytestmark = pytest.mark.postgres
FORMATS = ("json", "jsonl", "csv", "samples", "parquet", "influx", "openmetrics", "sqlite")


def exported(store, name="last"):
    with closing(Reader(store)) as reader:
        return {form: whole(form, StoredRun(reader, reader.find(name))) for form in FORMATS}


@pytest.fixture
def store(tmp_path):
    return tmp_path / "runs.sqlite"


@pytest.fixture
def other(tmp_path):
    return tmp_path / "other.sqlite"


def odd_run(store):
    """Write a run with several attempts, streams and metrics, and odd texts; returns its name."""
    run_id, name = new_run(store, trials=3)
    with closing(Recorder(store, run_id)) as recorder, closing(Reader(store)) as reader:
        first, second, _ = (trial.id for trial in reader.trials(run_id))
        recorder.update_run(status="running", started_time=1e9, facts={"host": "a\0b \ud7ff"})
        for host in ("rome", "bonn", "rome"):
            recorder.update_host(host, {"kernel": f"6.12 of {host}", "odd": "\0"})
        for attempt in (1, 2):
            flow = add_flow(recorder, first, attempt=attempt, status="ok", error="\0", stderr="\0")
            for number in range(3 if attempt == 1 else 2 * MOST_SAMPLES + 7):
                add_sample(recorder, flow, number / 10, stream=number % 2)
                if not number % 3:
                    both = {"rtt_s": -0.0, "throughput_bps": 1e300}
                    add_sample(recorder, flow, number / 10, both, role="server")
            recorder.add_figures(flow, figures())
        recorder.update_trial(first, status="running")
        recorder.update_trial(first, status="ok")
        recorder.update_trial(second, status="skipped", error="never begun \0")
        recorder.update_run(status="interrupted", finished_time=1e9 + 5)
    return name


@pytest.mark.parametrize("make", [odd_run, mesh_run])
def test_a_pulled_runs_exports_equal_the_originals_to_the_byte(archive, store, other, make):
    measured_run(store, {1: FIVE_MBIT}, intervals=5)  # so that its ids begin elsewhere
    name = make(store)
    assert pushed(archive, store, name) is PushOutcome.NEW
    measured_run(other, {1: FIVE_MBIT}, intervals=2)
    assert pulled(archive, other, name[:-1])
    assert exported(other, name) == exported(store, name)
    assert not pulled(archive, other, name)
    assert pushed(archive, other, name) is PushOutcome.SAME


def count(archive, table):
    return archive.rows(f"SELECT count(*) FROM benchctl_data.{table}")[0][0]


def test_a_newer_revision_replaces_all_of_an_older_one_and_never_the_reverse(archive, store, other):
    measured_run(store, {1: (1e6, None)}, intervals=3)
    assert pushed(archive, store) is PushOutcome.NEW
    assert pulled(archive, other)
    before = archive.rows("SELECT * FROM benchctl.samples")
    assert pushed(archive, store) is PushOutcome.SAME
    add_remark(store, 1, "it rained", 1e9)
    assert pushed(archive, store) is PushOutcome.REPLACED
    assert pushed(archive, other) is PushOutcome.OLDER
    with pytest.raises(StoreError, match="has another revision of run"):
        pulled(archive, other)
    with closing(Reader(store)) as reader:
        assert reader.find("last").name == archived_runs(archive)[0].name
    # It is resumed: another attempt of the trial that failed.
    reopen_run(store, 1, failed=True)
    with closing(Recorder(store, 1)) as recorder:
        recorder.update_run(status="running")
        flow = add_flow(recorder, 2, attempt=2, status="ok")
        recorder.add_figures(flow, figures(2e6))
        recorder.update_trial(2, status="running")
        recorder.update_trial(2, status="ok")
        recorder.update_run(status="ok", finished_time=1e9)
    assert pushed(archive, store) is PushOutcome.REPLACED
    assert archive.rows("SELECT value FROM benchctl.figures ORDER BY trial") == [(1e6,), (2e6,)]
    assert archive.rows("SELECT attempts FROM benchctl.flows ORDER BY trial") == [(1,), (2,)]
    assert archive.rows("SELECT * FROM benchctl.samples") == before
    assert pushed(archive, other, replace=True) is PushOutcome.REPLACED
    assert [count(archive, one) for one in ("run", "figure", "flow", "piece")] == [1, 1, 2, 1]


def test_a_run_whose_tags_changed_is_missing_and_may_have_its_old_tags_again(archive, store):
    measured_run(store, {1: FIVE_MBIT})

    def lacks():
        with closing(Reader(store)) as reader:
            return [run.name for run in missing(archive, reader, reader.runs())]

    assert len(lacks()) == 1
    for tags in ([], [BASELINE], []):
        set_tags(store, 1, tags)
        assert len(lacks()) == 1
        pushed(archive, store)
        assert not lacks()
        assert archived_runs(archive)[0].tags == tuple(tags)


def test_a_run_in_progress_is_neither_pushed_nor_missing_and_one_that_died_is_both(archive, store):
    run_id, _ = new_run(store)
    with pytest.raises(UsageError, match="has not begun"):
        pushed(archive, store)
    with closing(Recorder(store, run_id)) as recorder:
        recorder.update_run(status="running")
    with closing(Reader(store)) as reader:
        assert [*missing(archive, reader, reader.runs())]
        assert pushed(archive, store) is PushOutcome.NEW
        assert archived_runs(archive)[0].status == "died"
        assert not [*missing(archive, reader, reader.runs())]


@pytest.mark.parametrize(
    "change",
    [
        "piece SET values[1] = 7", "piece SET values[2] = NULL", "piece SET steps = '{1}'",
        "piece SET steps = '{}'", "piece SET series = series + 99", "piece SET omitted = '{t}'",
        "piece SET ends_s = '{1, 2}'", "piece SET starts_s[1] = 'NaN'",
        "piece SET metrics = '{a,b}'", r"run SET record = '\x00'", "run SET record = ''",
        r"run SET record = substr(record, 1, 900)", r"run SET sha256 = '\x00'",
    ],
)  # fmt: skip
def test_what_was_changed_in_the_archive_is_not_pulled(archive, store, other, change):
    measured_run(store, {1: FIVE_MBIT}, intervals=3)
    pushed(archive, store)
    archive.rows(f"UPDATE benchctl_data.{change} RETURNING 1")
    with pytest.raises(ArchiveError, match="is not what was pushed"):
        pulled(archive, other)
    assert not other.exists()


def test_a_record_of_another_run_is_not_pulled(archive, store, other):
    for now in (1e9, 1e9 + 1):
        measured_run(store, {1: FIVE_MBIT}, now=now)
        pushed(archive, store)
    archive.rows(
        "UPDATE benchctl_data.run SET (record, sha256) = (SELECT record, sha256 FROM"
        " benchctl_data.run ORDER BY name LIMIT 1) RETURNING 1"
    )
    with pytest.raises(ArchiveError, match="is not what was pushed"):
        pulled(archive, other)


def test_runs_are_found_by_name_id_tag_or_last(archive, store):
    names = [
        measured_run(store, {1: (n,)}, now=1e9 + n, tags=[tag])
        for n, tag in ((1, "old"), (2, "lab"), (3, "lab"))
    ]
    for name in names:
        pushed(archive, store, name)
    runs = archived_runs(archive)
    assert [run.name for run in runs] == names[::-1]
    assert find(runs, "last").name == names[2]
    assert find(runs, "old").name == names[0]
    assert find(runs, str(runs[1].id)).name == names[1]
    with pytest.raises(UsageError, match='"lab" is that of 2 runs'):
        find(runs, "lab")
    with pytest.raises(UsageError, match='no run "nothing"'):
        find(runs, "nothing")
