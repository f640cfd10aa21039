"""What the runner writes is what readers read."""

import sqlite3
import struct
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from store.store_support import NOW, SETTINGS, add_flow, add_sample, figures, new_run
from waiting import COMMAND_S

from benchctl.errors import StoreError, UsageError
from benchctl.metrics import Breach
from benchctl.run.planned import PlannedRun, PlannedTrial
from benchctl.run.record import Figure, FlowEvent, Happening, counting
from benchctl.store.bulk import Bulk
from benchctl.store.copies.copy import copy_run
from benchctl.store.manage import delete_run
from benchctl.store.read import Reader
from benchctl.store.record import Recorder, create_run, interrupt_run, reopen_run


@pytest.fixture
def store(tmp_path):
    return tmp_path / "runs.sqlite"


@pytest.fixture
def recorder(store):
    run_id, _ = new_run(store, trials=3)
    with closing(Recorder(store, run_id)) as recorder:
        yield recorder


@pytest.fixture
def reader(store, recorder):
    with closing(Reader(store)) as reader:
        yield reader


def test_a_new_run_is_planned_with_its_trials_in_order(store):
    run_id, name = new_run(store, trials=3)
    with closing(Reader(store)) as reader:
        run = reader.run(run_id)
        assert (run.name, run.status, run.trials, run.seed) == (name, "planned", 3, 7)
        assert run.created_time == NOW
        assert (run.started_time, run.finished_time, run.runner_pid) == (None, None, None)
        trials = list(reader.trials(run_id))
        assert [(t.position, t.repeat, t.point) for t in trials] == [
            (0, 1, {"n": 0}), (1, 2, {"n": 1}), (2, 3, {"n": 2}),
        ]  # fmt: skip
        assert {t.status for t in trials} == {"planned"}


NAMES = st.sampled_from(["throughput_bps", "rtt_s", "retransmits", "cwnd_bytes", "own_thing"])
SAMPLES = st.lists(
    st.tuples(
        st.sampled_from(["client", "server"]),
        st.integers(0, 3),
        st.sampled_from(["send", "receive"]),
        st.booleans(),
        st.floats(allow_nan=False, allow_infinity=False),
        # Series change: a sample may tell other metrics than the one before, in another order.
        st.dictionaries(NAMES, st.floats(allow_nan=False, allow_infinity=False), max_size=4),
        st.booleans(),
    ),
    max_size=30,
)


@settings(max_examples=60)
@given(samples=SAMPLES)
@example(samples=[("client", 0, "send", False, -0.0, {"rtt_s": -0.0}, False)])
def test_samples_come_back_bit_by_bit_whatever_they_tell_and_however_batched(samples):
    with TemporaryDirectory() as folder:
        store = Path(folder) / "runs.sqlite"
        run_id, _ = new_run(store)
        with closing(Recorder(store, run_id)) as recorder:
            flow_id = add_flow(recorder)
            for role, stream, direction, omitted, time_s, metrics, flush in samples:
                recorder.add_sample(
                    flow_id, role, stream, direction, time_s, time_s, time_s, omitted, metrics
                )
                if flush:
                    recorder.flush()
        with closing(Reader(store)) as reader:
            back = list(reader.samples(flow_id))
            assert [one.id for one in back] == sorted(one.id for one in back)
            assert [
                (s.role, s.stream, s.direction, s.omitted, bits(s.start_s), list_of(s.metrics))
                for s in back
            ] == [
                # SQLite keeps no sign of a zero (sqlite.org, "Floating Point Numbers").
                (role, stream, direction, omitted, bits(time_s + 0.0), list_of(metrics))
                for role, stream, direction, omitted, time_s, metrics, _ in samples
            ]
            assert list(reader.samples_of_trial(1)) == back
            assert list(reader.samples_of_trial(1, attempt=1)) == back
            assert list(reader.samples_of_trial(1, attempt=2)) == []


def bits(value):
    return struct.pack("<d", value)


def list_of(metrics):
    return [(name, bits(value)) for name, value in metrics.items()]


@given(
    texts=st.lists(
        st.tuples(st.text(), st.sampled_from(["info", "warning", "remark"]), st.floats(0, 2e9))
    )
)
@settings(max_examples=30)
def test_notes_come_back_as_they_were_said(texts):
    with TemporaryDirectory() as folder:
        store = Path(folder) / "runs.sqlite"
        run_id, _ = new_run(store)
        with closing(Recorder(store, run_id)) as recorder:
            flow_id = add_flow(recorder)
            for text, level, time in texts:
                recorder.add_note(text, level, time, None, flow_id)
        with closing(Reader(store)) as reader:
            notes = reader.notes(run_id)
            assert [(n.text, n.level, n.time, n.flow_id) for n in notes] == [
                (*said, flow_id) for said in texts
            ]


def test_a_sample_is_gathered_without_touching_the_disk(recorder, connections):
    # It runs in the event loop for every line of every tool, and must not be able to fail there.
    flow_id = add_flow(recorder)
    writes = []
    [connection] = connections
    connection.set_trace_callback(writes.append)
    add_sample(recorder, flow_id)
    recorder.add_note("a word", "info", NOW, None, flow_id)
    assert writes == []
    recorder.flush()
    assert writes[0] == "BEGIN IMMEDIATE"
    assert writes[-1] == "COMMIT"


def test_a_batch_is_one_transaction_and_seen_by_others_at_once(recorder, reader):
    flow_id = add_flow(recorder)
    changes = reader.changes()
    for number in range(100):
        add_sample(recorder, flow_id, number / 10, stream=number % 4)
    assert list(reader.samples(flow_id)) == []
    recorder.flush()
    assert len(list(reader.samples(flow_id))) == 100
    assert reader.changes() != changes


def test_what_is_written_at_once_comes_after_the_samples_before_it(recorder, reader):
    flow_id = add_flow(recorder)
    add_sample(recorder, flow_id)
    recorder.update_flow(flow_id, status="ok")
    assert len(list(reader.samples(flow_id))) == 1


def test_figures_come_back_with_their_spread_and_source(recorder, reader):
    flow_id = add_flow(recorder)
    told = {
        ("receive", "rtt_s"): Figure(0.02, "samples", {"min": 0.019, "max": 0.05}),
        ("send", "throughput_bps"): Figure(94.1e6, "tool"),
    }
    recorder.add_figures(flow_id, told)
    assert reader.figures(flow_id) == told


DROP = FlowEvent(
    "send", "throughput_bps", Happening.DROP, 12.0, None, 9e7, 3e7, 0.999, None,
    {"retransmits": 4.0},
)  # fmt: skip
STALL = FlowEvent("send", "throughput_bps", Happening.STALL, 3.0, 5.0, 9e7, 0.0)


def test_events_of_a_flow_come_back_in_order_of_time(recorder, reader):
    flow = add_flow(recorder)
    recorder.add_events(flow, [DROP, STALL])
    assert reader.events(flow) == [STALL, DROP]
    assert reader.events(flow + 1) == []


def test_the_intervals_of_a_flow_are_those_of_the_rate_of_its_longest_stream(recorder, reader):
    flow = add_flow(recorder)
    assert reader.intervals(flow, 20) == 0
    for number in range(7):
        extra = {"retransmits": 1.0} if number % 2 else {}  # a series of its own
        add_sample(recorder, flow, float(number), {"throughput_bps": 1.0, **extra})
        add_sample(recorder, flow, float(number), {"rtt_s": 1.0}, stream=2)
        recorder.add_sample(flow, "client", 0, "send", -1.0, 0.0, 0.0, True, {"sent_bps": 1.0})
    for number in range(3):
        add_sample(recorder, flow, float(number), stream=1)
    recorder.flush()
    assert [reader.intervals(flow, most) for most in (5, 7, 20)] == [5, 7, 7]
    recorder.add_sample(flow, "server", 0, "receive", 0.0, 1.0, 1.0, False, {"sent_bps": 1.0})
    recorder.flush()
    assert reader.intervals(flow, 20) == 1


def test_readers_read_while_the_runner_writes(recorder, store):
    flow_id = add_flow(recorder)
    written, whole = 2000, [float(number) for number in range(2000)]

    def follow():
        counts = [0]
        with closing(Reader(store)) as reader:
            while counts[-1] < written:
                starts = [sample.start_s for sample in reader.samples(flow_id)]
                assert starts == whole[: len(starts)]
                counts.append(len(starts))
        return counts

    with ThreadPoolExecutor() as threads:
        readers = [threads.submit(follow) for _ in range(2)]
        for number in range(written):
            add_sample(recorder, flow_id, float(number))
            if number % 50 == 49:
                recorder.flush()
        for one in readers:
            counts = one.result(timeout=COMMAND_S)
            assert counts == sorted(counts)


def test_figures_of_bulk_readers_are_the_same_samples(recorder, store):
    flow_id = add_flow(recorder)
    recorder.update_trial(1, status="running")
    recorder.update_trial(1, status="ok")
    for number in range(10):
        add_sample(recorder, flow_id, number / 10, {"throughput_bps": float(number), "rtt_s": 0.1})
    recorder.flush()
    with closing(Bulk(store)) as bulk:
        ((series, source),) = bulk.sources(1).items()
        assert source.metrics == ("throughput_bps", "rtt_s")
        rows = [row for _, batch in bulk.batches({series}, *bulk.extent(1)) for row in batch]
        assert [struct.unpack("<2d", row[3]) for row in rows] == [(n, 0.1) for n in range(10)]


def test_a_run_is_found_by_its_name_a_part_of_it_or_as_the_last(store):
    names = [new_run(store, now=NOW + 86_400 * day)[1] for day in range(3)]
    with closing(Reader(store)) as reader:
        assert [run.name for run in reader.runs()] == names[::-1]
        assert reader.find("last").name == names[2]
        assert reader.find(names[0]).name == names[0]
        assert reader.find(names[1][:8]).name == names[1]
        with pytest.raises(UsageError, match="matches 3 runs") as caught:
            reader.find(names[0][:4])
        assert names[2] in caught.value.hint
        with pytest.raises(UsageError, match='no run "yesterday"'):
            reader.find("yesterday")


def test_a_whole_name_goes_before_a_part_of_another(store):
    _, name = new_run(store)
    other, _ = new_run(store)
    with closing(Recorder(store, other)) as recorder:
        recorder.update_run(name=f"{name}-again")
    with closing(Reader(store)) as reader:
        assert reader.find(name).name == name


def test_the_last_of_no_runs_is_said_not_to_be(store):
    run_id, _ = new_run(store)
    delete_run(store, run_id)
    with closing(Reader(store)) as reader, pytest.raises(UsageError, match='no run "last"'):
        reader.find("last")


def test_open_trials_come_in_order_and_statuses_each_once(recorder, reader):
    assert reader.next_open(1, 0).position == 0
    recorder.update_trial(1, status="running")
    recorder.update_trial(1, status="ok")
    recorder.update_trial(2, status="interrupted")
    assert reader.next_open(1, 0).position == 1
    assert reader.next_open(1, 2).position == 2
    assert reader.next_open(1, 3) is None
    assert reader.statuses(1) == {"ok", "interrupted", "planned"}


def test_a_run_whose_runner_died_is_reopened_as_planned(store, recorder, reader):
    recorder.update_run(status="running", error="the disk is full", finished_time=2.0)
    recorder.update_trial(1, status="running")
    recorder.update_trial(1, status="ok", started_time=1.0, finished_time=2.0)
    recorder.update_trial(2, status="running", started_time=2.0, finished_time=2.0)
    done = add_flow(recorder, 2, status="failed", error="busy")
    cut = add_flow(recorder, 2, attempt=2)
    recorder.add_figures(done, figures())
    reopen_run(store, 1)
    assert (reader.run(1).status, reader.run(1).error) == ("planned", "")
    assert reader.run(1).finished_time is None
    trials = list(reader.trials(1))
    assert [trial.status for trial in trials] == ["ok", "planned", "planned"]
    assert [(t.started_time, t.finished_time) for t in trials] == [(1.0, 2.0), *[(None, None)] * 2]
    flows = {flow.id: flow for flow in reader.flows(2, all_attempts=True)}
    assert (flows[done].status, flows[done].error) == ("failed", "busy")
    assert (flows[cut].status, flows[cut].error) == ("interrupted", "the runner ended before it")
    assert [flow.id for flow in reader.flows(2)] == [cut]
    assert reader.attempts(2) == 2


def test_reopening_one_run_touches_no_other(store, recorder, reader):
    other, _ = new_run(store)
    recorder.update_run(status="running")
    recorder.update_trial(1, status="running")
    reopen_run(store, other)
    assert reader.run(1).status == "died"
    assert next(reader.trials(1)).status == "running"


@pytest.mark.parametrize(("was", "then"), [("planned", "ok"), ("ok", "running"), ("ok", "planned")])
@pytest.mark.parametrize("what", ["run", "trial", "flow"])
def test_a_state_that_may_not_follow_is_not_written(recorder, reader, what, was, then):
    flow_id = add_flow(recorder, status="planned")
    update = {
        "run": recorder.update_run,
        "trial": partial(recorder.update_trial, 1),
        "flow": partial(recorder.update_flow, flow_id),
    }[what]
    for state in ("running", "ok")[: 2 * (was == "ok")]:
        update(status=state)
    with pytest.raises(StoreError, match=f"a state of a {what} that may not follow"):
        update(status=then)
    recorder._steps.clear()  # which would be refused again at the end
    stored = {"run": reader.run(1), "trial": next(reader.trials(1)), "flow": reader.flows(1)[0]}
    assert stored[what].status == was


@pytest.mark.parametrize(("was", "then"), [("running", "interrupted"), ("ok", "ok")])
def test_a_killed_runner_leaves_its_run_interrupted_unless_it_had_ended(
    store, recorder, reader, was, then
):
    recorder.update_run(status="running")
    recorder.update_run(status=was)
    interrupt_run(store, 1)
    assert reader.run(1).status == then


def test_an_interrupt_before_a_run_is_there_leaves_nothing(store):
    def interrupt():
        raise KeyboardInterrupt

    new_run(store)
    planned = PlannedRun("p", "", 7, SETTINGS, [PlannedTrial(0, 1, {}, (), {}, 1.0, 16.0)], "")
    with pytest.raises(KeyboardInterrupt):
        create_run(store, planned, NOW, before_commit=interrupt)
    with closing(Reader(store)) as reader:
        assert len(reader.runs()) == 1


def test_runs_are_listed_by_time_and_the_last_is_the_one_that_was_stored_last(store):
    """An imported run is stored after others, and was measured before them."""
    for now in (NOW, NOW + 60, NOW - 3600):
        new_run(store, now=now)
    with closing(Reader(store)) as reader:
        by_time = [2, 1, 3]
        assert reader.run_ids() == by_time
        assert [*reader.stamps()] == by_time
        for runs in (reader.runs(), reader.outlines(), reader.runs_of([3, 1, 2])):
            assert [run.id for run in runs] == by_time
        assert reader.find("last").id == 3


def test_figures_keep_the_law_that_they_break_and_others_are_held_when_they_are_read(tmp_path):
    path = tmp_path / "runs.sqlite"
    new_run(path)
    breach = Breach("packets add up", "received 834 of 739 sent")
    kept = {
        ("send", "packets_sent"): Figure(739.0, "tool"),
        ("send", "packets_received"): Figure(738.0, "samples", {}, breach, 834.0, 1.0),
    }
    impossible = {**kept, ("send", "packets_received"): Figure(834.0, "tool")}
    with closing(Recorder(path, 1)) as recorder:
        held, earlier = (add_flow(recorder) for _ in range(2))
        recorder.add_figures(
            held, {**kept, ("send", "packets_lost"): Figure(-95.0, "tool", {}, breach)}
        )
        recorder.add_figures(earlier, impossible)
        recorder.update_flow(held, held=True, status="ok")
    with closing(Reader(path)) as reader:
        assert counting(reader.figures(held)) == kept
        read = reader.figures(earlier)
        assert read["send", "packets_received"].broken == breach
        assert not counting(read)
    with closing(Bulk(path)) as bulk:
        first, _ = bulk.flow_rows(1, ["packets_received", "packets_lost"])
    assert first.figures == {("send", "packets_received"): 738.0}


def test_the_facts_of_a_host_are_written_apart_from_those_of_others(recorder, reader, store):
    recorder.update_run(hosts={"lima": {"kernel": "5.10"}, "oslo": {"kernel": "5.4"}})
    for host, kernel in (("rome", "6.1"), ("bonn", "6.6"), ("rome", "6.12"), ("oslo", "6.2")):
        recorder.update_host(host, {"kernel": kernel})
    (run,) = reader.runs()
    assert run == reader.run(run.id) == reader.runs_of([run.id])[0]
    kernels = [(host, facts["kernel"]) for host, facts in run.hosts.items()]
    assert kernels == [("lima", "5.10"), ("oslo", "6.2"), ("rome", "6.12"), ("bonn", "6.6")]
    copy = store.with_name("copy.sqlite")
    new_run(copy)  # so that ids differ there
    with closing(Reader(copy)) as copied:
        assert copied.run(copy_run(store, run.id, copy)).hosts == run.hosts
    delete_run(store, run.id)
    with closing(sqlite3.connect(store)) as connection:
        assert connection.execute("SELECT count(*) FROM host").fetchone() == (0,)
