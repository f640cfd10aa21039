"""A stop, a skip or a deadline can happen at any moment of a trial."""

import asyncio
import tempfile
from pathlib import Path

import pytest
from engine.fakes import GOOD, SERVER, Script
from engine.virtual import NETWORK, flow, run_trial
from hypothesis import given, settings
from hypothesis import strategies as st

from benchctl.engine.site.site import Site
from benchctl.errors import LabError

ENDS = ("ok", "failed", "timed_out", "interrupted", "skipped")


def scripts():
    """Return the scripts of a trial that fails once, waits, and then has three flows."""
    fails = Script([(0.1, "fail peer it went away")], 0.3, 1)
    long = Script([(0.5, "sample 0 0.5 100"), (1.0, "sample 0.5 1 300")], 3.0)
    stubborn = Script([(0.5, "sample 0 0.5 100")], 4.0, on_signal=None)
    return {"server": SERVER, "client a": [fails, long], "client b": stubborn, "client c": GOOD}


@settings(max_examples=60)
@given(
    at_s=st.one_of(st.floats(0, 16), st.sampled_from([0.0, 0.01, 0.02, 0.51, 0.52, 0.61])),
    name=st.sampled_from(["stop", "skip"]),
    deadline_s=st.sampled_from([0.005, 0.2, 1.0, 3.7, 100.0]),
    start_s=st.sampled_from([0.0, 0.01, 0.3]),
)
def test_whenever_it_comes_nothing_is_left_running_and_everything_is_written(
    at_s, name, deadline_s, start_s
):
    with tempfile.TemporaryDirectory() as folder:
        outcome = run_trial(
            Path(folder) / "runs.sqlite", scripts(), flow("a", label="a"), flow("b", label="b"),
            flow("c", label="c", delay_s=1.0), attempts=2, start_s=start_s, deadline_s=deadline_s,
            during=(at_s, lambda signals: getattr(signals, name).set()),
        )  # fmt: skip
        try:
            assert all(process.has_ended for process in outcome.processes)
            assert outcome.status == outcome.trial.status in ENDS
            for one in outcome.flows:
                assert one.status in ENDS
                assert one.finished_time is not None
                assert bool(one.error) == (one.status != "ok")
            asked = {"stop": "interrupted", "skip": "skipped"}[name]
            ended_s = outcome.trial.finished_time - 1_000_000
            if outcome.status == asked:
                # After a skip each end has its grace, after a stop all have it together.
                assert at_s - 0.001 <= ended_s <= at_s + {"stop": 2.1, "skip": 4.1}[name]
            else:
                assert outcome.status in ("ok", "failed", "timed_out")
        finally:
            outcome.reader.close()


@settings(max_examples=30)
@given(at_s=st.floats(0, 8), start_s=st.sampled_from([0.0, 0.3]))
def test_a_trial_that_is_cancelled_leaves_no_task_behind_that_would_still_write(at_s, start_s):
    def cancel(_):
        (trial,) = (task for task in asyncio.all_tasks() if task.get_coro().__name__ == "alone")
        trial.cancel()

    with (
        tempfile.TemporaryDirectory() as folder,
        pytest.raises(asyncio.CancelledError),
    ):
        run_trial(
            Path(folder) / "runs.sqlite", {**scripts(), "server": SERVER}, flow("a", label="b"),
            flow("c", label="c", delay_s=9.0), attempts=2, start_s=start_s, during=(at_s, cancel),
        )  # fmt: skip


@settings(max_examples=20)
@given(at_s=st.floats(0, 4))
def test_a_stop_that_comes_when_all_is_measured_changes_nothing(at_s):
    with tempfile.TemporaryDirectory() as folder:
        outcome = run_trial(
            Path(folder) / "runs.sqlite", {"server": SERVER, "client": GOOD},
            during=(at_s, lambda signals: signals.stop.set()),
        )  # fmt: skip
        outcome.reader.close()
        measured = at_s > 0.01 + GOOD.ends_s
        assert outcome.status == ("ok" if measured else "interrupted")


class _Falling(Site):
    """A lab that is being built, and fails when that is cancelled."""

    async def prepare(self, trial):
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise LabError("half of it fell") from None


def test_a_lab_that_fails_while_the_trial_is_stopped_is_no_complaint_of_the_event_loop(measure):
    stop = (1.0, lambda signals: signals.stop.set())
    outcome = measure({}, site=_Falling(NETWORK), during=stop)
    assert outcome.status == outcome.trial.status == "interrupted"
