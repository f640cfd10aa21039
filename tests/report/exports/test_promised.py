"""Exporters of plugins get what is documented, one sample at a time."""

import json
import tracemalloc
from contextlib import closing

import pytest
from msgspec.structs import replace
from report.whole import whole
from store.store_support import NOW, add_flow, add_sample, figures, new_run

from benchctl.exporter import Exporter
from benchctl.report.exports.promised import promised
from benchctl.report.report import StoredRun
from benchctl.store.read import Reader
from benchctl.store.record import Recorder

MANY = 5_000


class Format(Exporter):
    name, about, endings = "sample", "a sample", ()

    def __init__(self, *, single_trial=False):
        self.single_trial = single_trial

    def export(self, run):
        raise NotImplementedError


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A run of two trials, the first tried twice, the second of many samples."""
    store = tmp_path_factory.mktemp("promised") / "runs.sqlite"
    run_id, _ = new_run(store, trials=2)
    with closing(Recorder(store, run_id)) as recorder:
        recorder.update_run(status="running", started_time=NOW)
        for trial_id, attempts in ((1, (1, 3)), (2, (MANY,))):
            recorder.update_trial(trial_id, status="running", started_time=NOW)
            for attempt, samples in enumerate(attempts, 1):
                flow_id = add_flow(recorder, trial_id, attempt=attempt, started_time=NOW + attempt)
                for n in range(samples):
                    add_sample(recorder, flow_id, n / 10, stream=n % 2)
                recorder.update_flow(flow_id, status="ok" if samples > 1 else "failed")
                recorder.add_figures(flow_id, figures())
            recorder.update_trial(trial_id, status="ok", finished_time=NOW + 9)
        recorder.update_run(status="ok", finished_time=NOW + 9)
    with closing(Reader(store)) as reader:
        yield StoredRun(reader, reader.run(run_id))


def test_the_document_is_the_json(stored):
    assert promised(stored, Format()).document == json.loads(whole("json", stored))


def test_samples_are_those_of_the_events_with_their_trial_and_their_second_0(stored):
    events = map(json.loads, whole("jsonl", stored).splitlines())
    of_events = [event for event in events if event["event"] == "sample"]
    rows = [*promised(stored, Format()).samples()]
    assert len(rows) == len(of_events) == MANY + 4
    trials = promised(stored, Format()).document["trials"]
    for row, event in zip(rows, of_events, strict=True):
        trial = trials[row["trial"]]
        more = {"repeat": trial["repeat"], "point": trial["point"], "trial": trial["index"]}
        more["started_time"] = NOW + row["attempt"]
        assert {"event": "sample", **row} == {**event, **more}


def test_many_samples_take_the_memory_of_one(stored):
    run = promised(stored, Format())
    tracemalloc.start()
    try:
        for _ in run.samples():
            pass
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_bytes < 40 * MANY  # as rows in a list they take 700 bytes each


def test_a_format_of_single_trials_gets_nothing_of_the_others(stored):
    run = promised(replace(stored, trial=1), Format(single_trial=True))
    assert [trial["index"] for trial in run.document["trials"]] == [0]
    assert {row["n"] for row in run.document["summary"]} == {1}
    assert [row["trial"] for row in run.samples()] == [0] * 4


def test_what_is_not_promised_cannot_be_reached(stored):
    run = promised(stored, Format())
    assert {name for name in dir(run) if not name.startswith("_")} == {"document", "samples"}
