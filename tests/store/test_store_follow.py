"""A run reads the same live, in small steps, and afterwards, in one."""

import json
from contextlib import ExitStack, closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from store.store_support import NOW, add_flow, add_sample, figures, new_run

from benchctl.report.exports.jsonl import event_lines
from benchctl.store.follow import Follower, Noted, RunResumed, Sampled
from benchctl.store.read import Reader
from benchctl.store.record import Recorder, reopen_run

# What the engine does: trials of attempts of flows; a flow is how many batches of samples it tells.
RUNS = st.lists(
    st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=3), min_size=1, max_size=3),
    min_size=1,
    max_size=3,
)


class Session:
    """One runner's life, as a sequence of single writes in the order of the engine's."""

    def __init__(self, store, run_id, plan):
        self.store = store
        self.recorder = Recorder(store, run_id)
        self.plan = plan
        self.clock = NOW

    def now(self):
        self.clock += 0.01
        return self.clock

    def writes(self):
        """Yield after each write, so that somebody may look, or the runner may die there."""
        recorder = self.recorder
        recorder.update_run(status="running", started_time=self.now())
        yield
        for trial_id, attempts in self.plan.items():
            self.note(None, f"before {trial_id}")
            yield
            for attempt in attempts:
                yield from self.attempt(trial_id, attempt)
            recorder.update_trial(trial_id, status="ok", finished_time=self.now())
            yield
        recorder.update_run(status="ok", finished_time=self.now())
        yield

    def attempt(self, trial_id, flows):
        recorder = self.recorder
        with closing(Reader(self.store)) as reader:
            number = reader.attempts(trial_id) + 1
        recorder.update_trial(trial_id, status="running", started_time=self.now())
        yield
        ids = []
        for index, _ in enumerate(flows):
            ids.append(
                add_flow(recorder, trial_id, attempt=number, name=f"f{index}", status="planned")
            )
            yield
        for flow_id in ids:
            recorder.update_flow(flow_id, client=["client", str(flow_id)])
            yield
        for flow_id in ids:
            recorder.update_flow(flow_id, status="running")
            yield
        recorder.update_trial(trial_id, started_time=self.now())
        yield
        for batch in range(max(flows)):
            for flow_id, batches in zip(ids, flows, strict=True):
                if batch < batches:
                    add_sample(recorder, flow_id, float(batch))
                    self.note(flow_id, f"batch {batch}")
            recorder.flush()
            yield
        for flow_id, batches in zip(ids, flows, strict=True):
            add_sample(recorder, flow_id, 9.0)  # its last words
            recorder.add_figures(flow_id, figures())
            yield
            recorder.update_flow(flow_id, status="ok" if batches else "failed")
            yield

    def note(self, flow_id, text):
        self.recorder.add_note(text, "info", self.now(), None, flow_id)
        self.recorder.flush()


def follow(store, run_id, alive, **options):
    """Return a reader and a follower of a run whose runner is alive when ``alive`` says so."""
    reader = Reader(store)
    reader.is_alive = lambda run: bool(alive)
    return reader, Follower(reader, run_id, **options)


def lines(events):
    return list(event_lines(events))


def without_notes(events):
    return lines(event for event in events if not isinstance(event, Noted))


def notes_by_trial(events):
    """Return the notes, and after how many ends of trials each came."""
    ended, told = 0, []
    for event in events:
        ended += type(event).__name__ == "TrialEnded"
        if isinstance(event, Noted):
            told.append((ended, event.note.text))
    return told


def live(session, reader, follower, looks, dies_after, alive):
    """Write a session, looking when ``looks`` says so; returns the events seen."""
    with closing(reader):
        return watched(session, follower, looks, dies_after, alive)


def watched(session, follower, looks, dies_after, alive):
    events = []
    for step, _ in enumerate(session.writes()):
        if looks and looks[step % len(looks)]:
            events += follower.poll()
        if step == dies_after:
            break
    session.recorder.close()
    alive.clear()
    events += follower.poll()
    assert follower.ended
    assert list(follower.poll()) == []
    return events


@settings(max_examples=50)
@given(
    run=RUNS,
    looks=st.lists(st.booleans(), max_size=20),
    dies_after=st.none() | st.integers(0, 60),
    again=st.lists(st.booleans(), max_size=20),
)
def test_the_same_events_come_live_and_afterwards_of_whole_killed_and_resumed_runs(
    run, looks, dies_after, again
):
    with TemporaryDirectory() as folder:
        store = Path(folder) / "runs.sqlite"
        run_id, _ = new_run(store, trials=len(run))
        plan = dict(enumerate(run, 1))
        alive = [True]
        session = Session(store, run_id, plan)
        seen = live(session, *follow(store, run_id, alive), looks, dies_after, alive)

        reader, follower = follow(store, run_id, alive)
        afterwards = list(follower.poll())
        assert without_notes(seen) == without_notes(afterwards)
        assert notes_by_trial(seen) == notes_by_trial(afterwards)

        left = {t.id: plan[t.id] for t in reader.trials(run_id) if t.status != "ok"}
        reader.close()
        if not left:
            return
        reopen_run(store, run_id)
        alive = [True]
        reader, follower = follow(store, run_id, alive)
        assert not any(type(e).__name__ == "RunEnded" for e in follower.poll())
        resumed = Session(store, run_id, left)
        resumed.clock = session.clock
        reader.close()
        seen = live(resumed, *follow(store, run_id, alive), again, None, alive)
        reader, follower = follow(store, run_id, alive)
        afterwards = list(follower.poll())
        reader.close()
        assert without_notes(seen) == without_notes(afterwards)


def of_kind(kind, events):
    return [line for line in lines(events) if json.loads(line)["event"] == kind]


@settings(max_examples=50)
@given(
    run=RUNS,
    looks=st.lists(st.booleans(), max_size=20),
    dies_after=st.integers(0, 60),
    again=st.lists(st.booleans(), max_size=20),
)
def test_a_follower_goes_on_with_a_run_that_is_resumed_and_repeats_nothing(
    run, looks, dies_after, again
):
    with TemporaryDirectory() as folder, ExitStack() as opened:
        store = Path(folder) / "runs.sqlite"
        run_id, _ = new_run(store, trials=len(run))
        plan, alive = dict(enumerate(run, 1)), [True]
        reader, follower = follow(store, run_id, alive)
        opened.enter_context(closing(reader))
        session = Session(store, run_id, plan)
        before = watched(session, follower, looks, dies_after, alive)
        left = {t.id: plan[t.id] for t in reader.trials(run_id) if t.status != "ok"}
        if not left:
            return
        newcomer = Follower(reader, run_id)
        newcomer.pass_over()
        reopen_run(store, run_id)
        alive.append(True)
        resumed = Session(store, run_id, left)
        resumed.clock = session.clock
        after = watched(resumed, follower, again, None, alive)
        assert without_notes(newcomer.poll()) == without_notes(after)
        assert [type(event).__name__ for event in after].count("RunResumed") == 1
        assert isinstance(after[0], RunResumed)
        ended = [json.loads(line)["index"] for line in of_kind("trial_ended", [*before, *after])]
        assert ended == list(range(len(run)))
        whole = list(Follower(reader, run_id).poll())
        for kind in ("flow_started", "sample", "note"):
            assert of_kind(kind, [*before, *after]) == of_kind(kind, whole)


def test_a_run_that_was_resumed_and_ended_between_two_polls_is_followed_too(store, recorder, alive):
    reader, follower = follow(store, 1, alive)
    recorder.update_run(status="running", runner_pid=1)
    recorder.update_trial(1, status="running")
    recorder.update_trial(1, status="interrupted", finished_time=NOW)
    recorder.update_run(status="interrupted", finished_time=NOW)
    assert names(follower.poll()) == ["TrialStarted", "TrialEnded", "RunEnded"]
    assert names(follower.poll()) == []
    reopen_run(store, 1)
    recorder.update_run(status="running", runner_pid=2)
    for trial in (1, 2):
        recorder.update_trial(trial, status="running")
        recorder.update_trial(trial, status="ok", finished_time=NOW + 9)
    recorder.update_run(status="ok", finished_time=NOW + 9)
    told = list(follower.poll())
    assert names(told) == [
        "RunResumed", *["TrialStarted", "TrialEnded"] * 2, "RunEnded",
    ]  # fmt: skip
    assert [event.trial.status for event in told if hasattr(event, "trial")][1::2] == ["ok", "ok"]
    assert names(follower.poll()) == []
    reader.close()


def end_trial(recorder, trial_id, status, time):
    recorder.update_trial(trial_id, status="running", started_time=time)
    recorder.update_trial(trial_id, status=status, finished_time=time + 1)


def numbered(events):
    """Return the kinds of events with the positions of their trials."""
    return [
        f"{type(event).__name__} {event.trial.position}"
        if hasattr(event, "trial")
        else type(event).__name__
        for event in events
    ]


def test_failed_trials_that_are_measured_again_are_followed_and_no_other(
    store, recorder, alive, follower
):
    recorder.update_run(status="running", runner_pid=1)
    end_trial(recorder, 1, "failed", NOW)
    end_trial(recorder, 2, "ok", NOW + 1)
    recorder.update_run(status="failed", finished_time=NOW + 2)
    list(follower.poll())
    resumer_reader, resumer = follow(store, 1, alive)
    resumer.pass_over()
    reopen_run(store, 1, failed=True)
    for one in (follower, resumer):
        (resumed,) = one.poll()
        assert resumed.planned == {0}
    # Who comes now knows already what was measured after it.
    newcomer_reader, newcomer = follow(store, 1, alive)
    assert numbered(newcomer.poll()) == ["TrialStarted 1", "TrialEnded 1"]
    recorder.update_run(status="running", runner_pid=2)
    recorder.update_trial(1, status="running", started_time=NOW + 3)
    for one in (follower, resumer, newcomer):
        assert numbered(one.poll()) == ["TrialStarted 0"]
        assert numbered(one.poll()) == []
    recorder.update_trial(1, status="ok", finished_time=NOW + 4)
    recorder.update_run(status="ok", finished_time=NOW + 4)
    for one in (follower, resumer, newcomer):
        assert numbered(one.poll()) == ["TrialEnded 0", "RunEnded"]
    newcomer_reader.close()
    resumer_reader.close()


def test_a_failed_trial_that_is_not_measured_again_is_not_repeated(store, recorder, follower):
    recorder.update_run(status="running", runner_pid=1)
    end_trial(recorder, 1, "failed", NOW)
    recorder.update_run(status="interrupted", finished_time=NOW + 2)
    list(follower.poll())
    reopen_run(store, 1)
    (resumed,) = follower.poll()
    assert resumed.planned == {1}
    recorder.update_run(status="running", runner_pid=2)
    end_trial(recorder, 2, "ok", NOW + 3)
    assert numbered(follower.poll()) == ["TrialStarted 1", "TrialEnded 1"]


def test_a_follower_without_samples_sees_all_but_those(tmp_path):
    store = tmp_path / "runs.sqlite"
    run_id, _ = new_run(store, trials=2)
    session = Session(store, run_id, {1: [[2, 1], [3]], 2: [[1]]})
    for _ in session.writes():
        pass
    session.recorder.close()
    reader, follower = follow(store, run_id, [])
    whole = list(follower.poll())
    reader.close()
    reader, follower = follow(store, run_id, [], samples=False)
    assert lines(follower.poll()) == lines(e for e in whole if not isinstance(e, Sampled))
    reader.close()


def names(events):
    return [type(event).__name__ for event in events if not isinstance(event, Noted)]


@pytest.fixture
def store(tmp_path):
    return tmp_path / "runs.sqlite"


@pytest.fixture
def recorder(store):
    run_id, _ = new_run(store, trials=2)
    with closing(Recorder(store, run_id)) as recorder:
        yield recorder


@pytest.fixture
def alive():
    return [True]


@pytest.fixture
def follower(store, recorder, alive):
    reader, follower = follow(store, 1, alive)
    yield follower
    reader.close()


def test_a_run_that_is_planned_is_waited_for(follower, recorder):
    assert list(follower.poll()) == []
    assert not follower.ended
    recorder.update_run(status="running")
    assert list(follower.poll()) == []


def test_flows_start_together_when_none_waits_for_its_server(follower, recorder):
    recorder.update_run(status="running")
    recorder.update_trial(1, status="running")
    one, two = (add_flow(recorder, status="planned", name=name) for name in "ab")
    assert names(follower.poll()) == ["TrialStarted"]
    recorder.update_flow(one, status="running")
    assert names(follower.poll()) == []
    recorder.update_flow(two, status="running")
    assert names(follower.poll()) == ["FlowStarted", "FlowStarted"]


def test_flows_end_together_after_the_last_sample_of_all(follower, recorder):
    recorder.update_run(status="running")
    recorder.update_trial(1, status="running")
    one, two = (add_flow(recorder, name=name) for name in "ab")
    recorder.update_flow(one, status="ok")
    assert names(follower.poll()) == ["TrialStarted", "FlowStarted", "FlowStarted"]
    add_sample(recorder, two)
    recorder.update_flow(two, status="ok")
    assert names(follower.poll()) == ["Sampled", "FlowEnded", "FlowEnded"]


def test_a_flow_that_ends_while_its_samples_are_read_ends_after_its_last(
    tmp_path, alive, monkeypatch
):
    store, read = tmp_path / "one.sqlite", Reader.samples_of_trial
    # While more than one trial is read, SQLite shows one moment of the store.
    run_id, _ = new_run(store, trials=1)
    reader, follower = follow(store, run_id, alive)
    with closing(reader), closing(Recorder(store, run_id)) as recorder:
        recorder.update_run(status="running")
        recorder.update_trial(1, status="running")
        flow = add_flow(recorder)

        def ends_meanwhile(*which):
            yield from [*read(*which)]
            add_sample(recorder, flow)
            recorder.update_flow(flow, status="ok")

        with monkeypatch.context() as patch:
            patch.setattr(Reader, "samples_of_trial", ends_meanwhile)
            assert names(follower.poll()) == ["TrialStarted", "FlowStarted"]
        assert names(follower.poll()) == ["Sampled", "FlowEnded"]


def test_a_runner_that_dies_ends_the_run_with_what_was_measured(follower, recorder, alive):
    recorder.update_run(status="running")
    recorder.update_trial(1, status="running")
    one, two = (add_flow(recorder, name=name) for name in "ab")
    add_sample(recorder, one)
    recorder.update_flow(two, status="failed")
    alive.clear()
    events = list(follower.poll())
    assert names(events) == [
        "TrialStarted", "FlowStarted", "FlowStarted", "Sampled", "FlowEnded", "RunEnded",
    ]  # fmt: skip
    assert events[-1].run.status == "died"


def test_a_runner_that_ends_between_two_questions_is_not_taken_for_dead(store, recorder):
    recorder.update_run(status="running")
    reader, follower = follow(store, 1, [])

    def is_alive(run):
        recorder.update_trial(1, status="running")
        recorder.update_trial(1, status="ok", finished_time=NOW)
        recorder.update_run(status="ok")
        return False

    reader.is_alive = is_alive
    events = list(follower.poll())
    reader.close()
    assert names(events) == ["TrialStarted", "TrialEnded", "RunEnded"]
    assert events[-1].run.status == "ok"


def test_a_note_of_the_run_is_told_at_once(follower, recorder):
    recorder.update_run(status="running")
    recorder.add_note("another run is being measured", "info", NOW, None, None)
    recorder.flush()
    (event,) = follower.poll()
    assert event.note.text == "another run is being measured"
