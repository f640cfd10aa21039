"""What the packets of a flow come to in the store, and what readers then say of it."""

from contextlib import closing

import pytest
from analysis.flow.probed import MS, arrived, both
from store.store_support import NOW, add_flow, new_run

from benchctl.analysis.flow.figures import FlowFold
from benchctl.analysis.flow_result import FlowResult, FlowSurroundings
from benchctl.api import Direction, Role, Sample, Started, TracedRoute
from benchctl.report.report import read_report
from benchctl.report.text.clocks import clock_lines
from benchctl.run.record import Happening
from benchctl.store.flow_recording import FlowRecording
from benchctl.store.read import Reader
from benchctl.store.record import Recorder

LAB = {"send": {"owd_s": 10 * MS}, "receive": {"owd_s": 10 * MS}}


@pytest.fixture
def measure(tmp_path):
    """Store the packets of both directions as one flow; returns its figures, events and lines."""

    def store(there, back, expected=None, *, one_clock=False):
        path = tmp_path / "runs.sqlite"
        run_id, _ = new_run(path)
        with closing(Recorder(path, run_id)) as recorder:
            recorder.update_run(status="running")
            recorder.update_trial(run_id, status="running")
            flow_id = add_flow(recorder, run_id, direction="both", expected=expected or {})
            recording = FlowRecording(flow_id, FlowResult(FlowFold()), recorder, lambda: NOW)
            recording.begin(NOW)
            recording.take(Role.CLIENT, Started(NOW))
            for way, packets in (("send", there), ("receive", back)):
                for at_s, delay_s in arrived(packets):
                    metrics = {"packets_sent": 1.0, "packets_received": 1.0, "owd_s": delay_s}
                    recording.take(Role.CLIENT, Sample(at_s, at_s, metrics, direction=way))
            recording.result.judge(NOW)
            recording.write(FlowSurroundings(expected=expected or {}, one_clock=one_clock))
            recorder.update_trial(run_id, status="ok")
            recorder.update_run(status="ok")
        with closing(Reader(path)) as reader:
            report = read_report(reader, reader.run(run_id))
            return reader.figures(flow_id), reader.events(flow_id), list(clock_lines(report))

    return store


def test_a_clock_that_was_set_apart_in_a_lab_is_seen_and_the_links_are_not(measure):
    truth = {"count": 500, "offset_s": 55 * MS, "steps": [(30.0, 5 * MS)]}
    figures, events, (line,) = measure(*both(**truth), LAB, one_clock=True)
    assert figures["send", "clock_offset_s"].value == pytest.approx(55 * MS, abs=0.2 * MS)
    assert figures["send", "owd_s"].spread["min"] == pytest.approx(65 * MS, abs=0.2 * MS)
    removed = figures["send", "owd_offset_removed_s"]
    assert removed.spread["min"] == pytest.approx(10 * MS, abs=0.2 * MS)
    assert figures["receive", "owd_s"].spread["min"] < 0
    assert {event.kind for event in events} == {Happening.CLOCK_STEP}
    assert "the clocks are about 55.0 ms apart" in line


def test_one_clock_leaves_figures_of_the_path_alone(measure):
    figures, events, lines = measure(*both(count=60), LAB, one_clock=True)
    assert not {metric for _, metric in figures} & {"clock_offset_s", "owd_offset_removed_s"}
    assert (events, lines) == ([], [])
    assert figures["send", "packets_lost"].value == 0


def test_a_route_is_kept_with_the_figures_of_its_hops(tmp_path):
    path = tmp_path / "runs.sqlite"
    run_id, _ = new_run(path)
    with closing(Recorder(path, run_id)) as recorder:
        flow_id = add_flow(recorder, run_id, direction="round-trip")
        recording = FlowRecording(flow_id, FlowResult(FlowFold()), recorder, lambda: NOW)
        recording.begin(NOW)
        for hop, rtt_s in ((1, 2 * MS), (1, 4 * MS), (3, 9 * MS)):
            metrics = {"hop_probes": 1.0, "hop_unanswered": 0.0, "hop_rtt_s": rtt_s}
            recording.take(Role.CLIENT, Sample(0.0, rtt_s, metrics, hop, Direction.ROUND_TRIP))
        recording.take(Role.CLIENT, TracedRoute([{"10.0.0.2": 2}, {}, {"10.0.9.9": 1}]))
        recording.result.judge(NOW)
        recording.write(FlowSurroundings())
    with closing(Reader(path)) as reader:
        (flow,) = reader.flows(run_id)
    first, silent, last = flow.route
    assert (first.addresses, silent.addresses) == ({"10.0.0.2": 2}, {})
    assert first.figures["hop_rtt_s"].value == pytest.approx(3 * MS)
    assert first.figures["hop_unanswered_ratio"].value == 0
    assert not silent.figures
    assert last.figures["hop_probes"].value == 1
