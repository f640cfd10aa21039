"""What is pushed comes back as it was, and the newest revision stays."""

from contextlib import closing

import pytest
from report.mesh_run import mesh_run
from report.whole import whole
from store.store_support import FIVE_MBIT, add_flow, add_sample, figures, measured_run, new_run

from benchctl.archive.pull import archived_runs, find, pull
from benchctl.archive.push import Outcome, push
from benchctl.report.report import StoredRun
from benchctl.store.read import Reader
from benchctl.store.record import Recorder

pytestmark = pytest.mark.tool("postgres")
FORMATS = ("json", "jsonl", "csv", "samples", "parquet", "influx", "openmetrics", "sqlite")


def pushed(archive, store, name="last", **options):
    with closing(Reader(store)) as reader:
        return push(archive, reader, reader.find(name), **options)


def exported(store, name="last"):
    with closing(Reader(store)) as reader:
        return {form: whole(form, StoredRun(reader, reader.find(name))) for form in FORMATS}


@pytest.fixture
def store(tmp_path):
    return tmp_path / "runs.sqlite"


def odd_run(store):
    """Write a run with several attempts, streams and metrics, and odd texts; returns its name."""
    run_id, name = new_run(store, trials=3)
    with closing(Recorder(store, run_id)) as recorder, closing(Reader(store)) as reader:
        first, second, _ = (trial.id for trial in reader.trials(run_id))
        recorder.update_run(status="running", started_time=1e9, facts={"host": "a\0b \ud7ff"})
        for attempt in (1, 2):
            flow = add_flow(
                recorder, first, attempt=attempt, status="ok", error="\0 x", stderr="\0"
            )
            for number in range(25_000 if attempt == 2 else 3):
                add_sample(recorder, flow, number / 10, stream=number % 2)
                if not number % 3:
                    both = {"rtt_s": -0.0, "throughput_bps": 1e300}
                    add_sample(recorder, flow, number / 10, both, role="server")
            recorder.add_figures(flow, figures(1e6))
        recorder.update_trial(first, status="running")
        recorder.update_trial(first, status="ok")
        recorder.update_trial(second, status="skipped", error="never begun \0")
        recorder.update_run(status="interrupted", finished_time=1e9 + 5)
    return name


@pytest.mark.parametrize("make", [odd_run, mesh_run])
def test_a_pulled_runs_exports_equal_the_originals_to_the_byte(archive, store, tmp_path, make):
    measured_run(store, {1: FIVE_MBIT}, intervals=5)  # so that its ids begin elsewhere
    name = make(store)
    assert pushed(archive, store, name) is Outcome.NEW
    other = tmp_path / "other.sqlite"
    measured_run(other, {1: FIVE_MBIT}, intervals=2)
    run = find(archived_runs(archive), name[:-1])
    assert pull(archive, run, other)
    assert exported(other, name) == exported(store, name)
    assert not pull(archive, run, other)
    assert pushed(archive, other, name) is Outcome.SAME
