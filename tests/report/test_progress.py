"""The progress line: how long a run still takes."""

import io
from dataclasses import replace

import pytest
from store.store_support import NOW, new_run

from benchctl.report.progress import LiveNarrator
from benchctl.store.follow import TrialEnded, TrialStarted
from benchctl.store.read import Reader


@pytest.fixture
def run_and_trial(tmp_path):
    run_id, _ = new_run(tmp_path / "runs.sqlite", trials=3)
    reader = Reader(tmp_path / "runs.sqlite")
    yield reader.run(run_id), next(reader.trials(run_id))
    reader.close()


@pytest.mark.parametrize(
    ("started", "finished", "left"),
    [
        (NOW, NOW + 10, "20.0 s left"),
        # Ended before it began: nobody knows yet how long one takes.
        (None, NOW + 10, ""),
        (NOW + 0.5, NOW, ""),
    ],
)
def test_the_time_left_is_that_of_trials_that_began(run_and_trial, started, finished, left):
    run, trial = run_and_trial
    stream = io.StringIO()
    narrator = LiveNarrator(run, stream, clock=lambda: NOW + 11)
    try:
        narrator.tell(TrialStarted(trial))
        narrator.tell(TrialEnded(replace(trial, started_time=started, finished_time=finished)))
        assert narrator.time_left() == left
    finally:
        narrator.close()
