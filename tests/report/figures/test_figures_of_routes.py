"""Figures of single streams: a line for each hop of a route."""

from contextlib import closing

import pytest
from store.store_support import NOW, add_flow, new_run

from benchctl.analysis.flow.figures import FlowFold
from benchctl.analysis.flow_result import FlowResult, FlowSurroundings
from benchctl.api import Direction, Role, Sample, TracedRoute
from benchctl.errors import UsageError
from benchctl.report.figures.figure import PictureKind
from benchctl.report.figures.making import Wanted, figures_of
from benchctl.report.report import read_report
from benchctl.store.flow_recording import FlowRecording
from benchctl.store.read import Reader
from benchctl.store.record import Recorder


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("routes") / "runs.sqlite"
    run_id, _ = new_run(path)
    with closing(Recorder(path, run_id)) as recorder:
        recorder.update_run(status="running", started_time=NOW)
        recorder.update_trial(run_id, status="running", started_time=NOW)
        flow_id = add_flow(recorder, run_id, name="trace", direction="round-trip", status="ok")
        recording = FlowRecording(flow_id, FlowResult(FlowFold()), recorder, lambda: NOW)
        recording.begin(NOW)
        for n in range(12):
            for hop, rtt_s in ((1, 0.002), (2, 0.012)):
                metrics = {"hop_probes": 1.0, "hop_unanswered": 0.0, "hop_rtt_s": rtt_s + n / 1e4}
                end = {"rtt_s": rtt_s + n / 1e4} if hop == 2 else {}
                start_s = 0.1 * n
                one = Sample(start_s, start_s, metrics | end, hop, Direction.ROUND_TRIP)
                recording.take(Role.CLIENT, one)
        recording.take(Role.CLIENT, TracedRoute([{"10.0.0.2": 12}, {"10.0.9.9": 12}]))
        recording.result.judge(NOW)
        recording.write(FlowSurroundings())
        recorder.update_trial(run_id, status="ok", finished_time=NOW + 2)
        recorder.update_run(status="ok", finished_time=NOW + 2)
    return path


def draw(store, *metrics, kind=None):
    with closing(Reader(store)) as reader:
        report = read_report(reader, reader.find("last"))
        return list(figures_of(reader, report, Wanted(kind, y=metrics)))


def test_each_hop_has_a_line_over_time_and_the_flow_has_its_own(store):
    (hops,) = draw(store, "hop_rtt_s")
    assert hops.kind is PictureKind.TIME
    assert hops.names == ["trace hop 1", "trace hop 2"]
    assert [round(max(line.ys), 4) for line in hops.panels[0].lines] == [0.0031, 0.0131]
    (flow,) = draw(store, "rtt_s")
    assert len(flow.panels[0].lines) == 1


@pytest.mark.parametrize("kind", [PictureKind.CDF, PictureKind.HISTOGRAM])
def test_each_hop_has_its_distribution(store, kind):
    (hops,) = draw(store, "hop_rtt_s", kind=kind)
    assert hops.names == ["trace hop 1", "trace hop 2"]
    first, second = (
        [x for x, y in zip(line.xs, line.ys, strict=True) if y] for line in hops.panels[0].lines
    )
    assert max(first) < min(second)


def test_each_hop_has_a_box(store):
    (hops,) = draw(store, "hop_rtt_s", kind=PictureKind.BOX)
    assert [box.count for box in hops.panels[0].boxes] == [12, 12]


def test_a_figure_of_means_has_no_hops_and_says_which_kinds_have(store):
    with pytest.raises(UsageError) as raised:
        draw(store, "hop_rtt_s", kind=PictureKind.BARS)
    assert "--kind time" in raised.value.hint
