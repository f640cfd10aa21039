"""Figures of packet traces: each segment, what was sent again, and nothing of that left out."""

import json
import math
from contextlib import closing
from functools import cache
from unittest.mock import Mock
from xml.etree import ElementTree

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packets.simulated import SIZE, Plan, Transfer
from packets.slow import slow
from packets.written import ethernet, ipv4, pcap, tcp, trace_of
from report.figures.test_figures import draw, rounded
from report.pictured_run import pictured_run
from report.traced_run import traced_run

from benchctl.cli.main import app
from benchctl.errors import UsageError
from benchctl.packets.trace import read_trace
from benchctl.report.figures import segments
from benchctl.report.figures.figure import LineRole, PictureKind
from benchctl.report.figures.making import Wanted
from benchctl.report.figures.paper.printed import printer
from benchctl.report.figures.parts import Part
from benchctl.report.figures.request import PictureRequest
from benchctl.report.figures.segments import FLIGHT, PANELS, RATE, RTT, SEQUENCE, sequences_of
from benchctl.report.lines.spans import to_text
from benchctl.report.page.drawing import svg_of
from benchctl.report.page.pictures import pictures_of
from benchctl.report.report import read_report
from benchctl.report.traced import TracedDirection, traces_of
from benchctl.store.read import Reader
from benchctl.tui.draw.plot.figure import figure_lines


def wanted(*y, **how):
    return Wanted(PictureKind.SEQUENCE, y=y, **how)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("packets") / "runs.sqlite"
    traced_run(path)
    return path


def lines_of(panel):
    return {line.name: line for line in panel.lines}


def test_a_figure_of_packets_says_what_it_shows(store, golden):
    (figure,) = draw(store, wanted(*PANELS, columns=60))
    text = json.dumps(rounded(msgspec.to_builtins(figure)), indent=1) + "\n"
    golden("report/golden/figure-time-sequence.json", text)


def test_a_trace_of_several_figures_is_read_once_and_each_is_as_if_alone(store, monkeypatch):
    ends = ["10.0.0.1:50112", "10.0.0.2:80"]
    only = {"host": ["a"]}
    alone = [draw(store, wanted(only=only | {"from": [end]}))[0] for end in ends]
    read = Mock(side_effect=segments.read_trace)
    monkeypatch.setattr(segments, "read_trace", read)
    together = draw(store, wanted(only=only, by=["from"]))
    assert read.call_count == 1
    panels = [sorted((figure.panels for figure in some), key=str) for some in (alone, together)]
    assert panels[0] == panels[1]


def test_what_was_sent_again_and_zero_windows_are_marked_and_counted(store):
    (figure,) = draw(store, wanted())
    sequence, flight = figure.panels
    lines = lines_of(sequence)
    assert lines["fast retransmission"].xs == pytest.approx([1.1211], abs=1e-6)
    assert lines["timeout retransmission"].xs == pytest.approx([1.431], abs=1e-6)
    assert lines["window probe"].xs == pytest.approx([2.835, 3.235], abs=1e-6)
    assert lines["zero window"].xs[:2] == pytest.approx([2.635, 3.685], abs=1e-6)
    assert lines["zero window"].ys[0] == max(y for x, y in zip(
        lines["acknowledged"].xs, lines["acknowledged"].ys, strict=True) if x < 2.64)  # fmt: skip
    for panel in (sequence, flight):
        (event,) = panel.events
        assert (event.word, event.x) == ("zero window", pytest.approx(2.635))
    assert figure.notes[0] == (
        "marked: fast retransmission 1, timeout retransmission 1, zero window 1, window probe 2"
    )


def test_in_flight_stands_beside_the_windows(store):
    (figure,) = draw(store, wanted(FLIGHT))
    lines = lines_of(figure.panels[0])
    assert max(lines["in flight"].ys) == 14600
    assert max(y for y in lines["estimated cwnd"].ys if y == y) == 14600
    window = lines["receiver's window"].ys
    assert (min(window), max(window)) == (0, 65536)


def test_the_congestion_window_is_unknown_while_something_else_is_waited_for(store):
    (figure,) = draw(store, wanted(FLIGHT, begin_s=2.6, end_s=3.0))
    assert "estimated cwnd" not in lines_of(figure.panels[0])


def test_round_trip_times_and_rates_are_those_of_the_trace(store):
    (figure,) = draw(store, wanted(RTT, RATE))
    rtts, rates = (panel.lines[0] for panel in figure.panels)
    (file,) = store.parent.rglob("main-a-1.pcapng")
    half = read_trace(file).connections[0].halves[1]
    assert (min(rtts.lows), max(rtts.highs)) == (min(half.rtt_s), max(half.rtt_s))
    step_s = rates.xs[1] - rates.xs[0]
    carried = sum(rates.ys[:-1]) * step_s / 8
    assert carried == pytest.approx(half.unique_bytes)


def test_a_figure_begins_and_ends_where_it_is_asked_to(store):
    (figure,) = draw(store, wanted(begin_s=2.5, end_s=3.7))
    assert (figure.x.low, figure.x.high) == (2.5, 3.7)
    for line in figure.panels[0].lines:
        assert all(2.5 <= x <= 3.7 for x in line.xs)
    assert figure.notes[0] == "marked: zero window 1, window probe 2"
    assert lines_of(figure.panels[0])["acknowledged"].xs[0] == 2.5


@pytest.mark.parametrize("how", [{"begin_s": 9.0}, {"begin_s": 4.0, "end_s": 5.0}])
def test_a_time_without_packets_is_refused_with_the_time_there_is(store, how):
    with pytest.raises(UsageError) as caught:
        draw(store, wanted(**how))
    assert "no packet then" in caught.value.message
    assert caught.value.hint == "it lasts from 0 to 3.78612 s"


def test_the_senders_end_comes_first_and_others_are_chosen(store):
    (figure,) = draw(store, wanted())
    assert figure.about == "flow=main, host=a, connection=1, from=10.0.0.2:80"
    assert any(note.startswith("3 of 4 traces are left out") for note in figure.notes)
    (figure,) = draw(store, wanted(only={"host": ["b"], "from": ["10.0.0.1:50112"]}))
    assert figure.about == "flow=main, host=b, connection=1, from=10.0.0.1:50112"
    both = draw(store, wanted(by=["host"]))
    assert [figure.about.split(", ")[1] for figure in both] == ["host=a", "host=b"]
    every = draw(store, wanted(every=True))
    assert len({figure.name for figure in every}) == len(every) == 8


def test_without_packets_and_without_their_file_a_clear_line_says_so(tmp_path):
    pictured_run(tmp_path / "runs.sqlite", values={}, repeats=1)
    with pytest.raises(UsageError, match="no packets of it were recorded"):
        draw(tmp_path / "runs.sqlite", wanted())
    traced_run(tmp_path / "traced.sqlite")
    for file in tmp_path.rglob("*.pcapng"):
        file.unlink()
    with pytest.raises(UsageError, match=r"main-a-1\.pcapng: No such file"):
        draw(tmp_path / "traced.sqlite", wanted())


@pytest.mark.parametrize(
    ("how", "told"),
    [
        (wanted("cwnd_bytes"), "has no .cwnd_bytes"),
        (wanted(series="window"), "has no axis"),
        (Wanted(PictureKind.CDF, begin_s=1.0), "has no time"),
    ],
)
def test_what_a_figure_of_packets_has_not_is_refused(store, how, told):
    with pytest.raises(UsageError, match=told):
        draw(store, how)


def test_a_window_far_above_the_data_is_cut_off_and_said(tmp_path):
    traced_run(tmp_path / "runs.sqlite", {"a": trace_of(Transfer(Plan()))})
    (figure,) = draw(tmp_path / "runs.sqlite", wanted())
    sequence = figure.panels[0]
    window = lines_of(sequence)["receiver's window"]
    assert [y for y in window.ys if y == y] == [65536]  # in the SYN, where it is not scaled
    assert any("beyond the axis, up to 8.00 MiB more" in note for note in figure.notes)
    assert sequence.y.high == 65536


def lossy(segments):
    """Return a trace in which every third segment is sent again, and the window closes often."""
    packets, at_us = [], 0
    hello = {"options": b"\x02\x04\x05\xb4", "window": 60000}
    for way, seq, ack, flags in ((0, 0, 0, 2), (1, 0, 1, 18)):
        packets.append((at_us * 1000, ethernet(ipv4(tcp(way, seq, ack, flags, **hello), way))))
        at_us += 10
    for n in range(segments):
        copies = 2 if n % 3 == 0 else 1
        for copy in range(copies):
            body = tcp(0, 1 + n * SIZE, 1, size=SIZE)
            packets.append((at_us * 1000, ethernet(ipv4(body, ident=1 + (2 * n + copy) % 65535))))
            at_us += 10
        body = tcp(1, 1, 1 + (n + 1) * SIZE, window=0 if n % 5 == 0 else 60000)
        packets.append((at_us * 1000, ethernet(ipv4(body, 1))))
        at_us += 10
    return pcap(packets)


def test_thinned_figures_lose_no_retransmission_and_no_zero_window(tmp_path):
    traced_run(tmp_path / "runs.sqlite", {"a": lossy(3000)})
    (figure,) = draw(tmp_path / "runs.sqlite", wanted(SEQUENCE, columns=50))
    lines = lines_of(figure.panels[0])
    again = [line for name, line in lines.items() if "retransmission" in name]
    strokes = [(low, high) for one in again for low, high in zip(one.lows, one.highs, strict=True)]
    for n in range(0, 3000, 3):
        assert any(low <= 1 + n * SIZE and high >= 1 + (n + 1) * SIZE for low, high in strokes)
    closed = lines["zero window"]
    spans = [(closed.xs[n], closed.xs[n + 1]) for n in range(0, len(closed.xs), 3)]
    assert len(spans) <= 51
    assert spans[0][0] <= 0.001
    assert all(len(line.xs) <= 50 * 5 for line in lines.values())
    assert "retransmission 1,000, zero window 600" in figure.notes[0]
    assert figure.notes[1].startswith("3,001 segments are ")


PLACES = st.integers(24, 40_000)


@cache
def report_of(store):
    with closing(Reader(store)) as reader:
        return read_report(reader, reader.find("last"))


@settings(max_examples=40)
@given(
    st.lists(st.tuples(PLACES, st.binary(min_size=1, max_size=8)), min_size=1, max_size=40),
    st.integers(3_000, 40_000),
)
def test_a_damaged_trace_is_drawn_as_far_as_it_can_be_read(store, damage, size):
    changed = bytearray(slow())
    for at, octets in damage:
        changed[at : at + len(octets)] = octets
    path = store.parent / "damaged.pcap"
    path.write_bytes(changed[:size])
    report = report_of(store)
    (flow, packets), *_ = traces_of(report.trials)
    metrics = [(name, "") for name in PANELS]
    request = PictureRequest(report, PictureKind.SEQUENCE, metrics, "", "", Part(), 50)
    trace = read_trace(path)
    for number, connection in enumerate(trace.connections, 1):
        for way in (0, 1):
            if connection.halves[way].unique_bytes:
                traced = TracedDirection(flow, packets, path, number, way, ("a", "b"))
                (figure,) = sequences_of(request, [traced], [])
                assert figure_lines(figure, 80, 40)
                ElementTree.fromstring(svg_of(figure, 100))


def test_text_of_foreign_origin_is_made_visible(tmp_path):
    evil = "a\x1b[31m<script>"
    traced_run(tmp_path / "runs.sqlite", {evil.replace("/", ""): slow()}, title=evil)
    (figure,) = draw(tmp_path / "runs.sqlite", wanted())
    text = svg_of(figure, 100) + to_text(figure_lines(figure, 100, 40))
    assert "\x1b" not in text
    assert "<script" not in svg_of(figure, 100)
    assert "\\x1b" in figure.about


def test_every_way_of_drawing_shows_every_line(store):
    (figure,) = draw(store, wanted(*PANELS))
    page = svg_of(figure, 100)
    told = " ".join(to_text(figure_lines(figure, 120, 60)).split())
    with printer() as draw_on_paper:
        paper = draw_on_paper(figure, "svg").decode()
    for number, name in figure.named:
        assert name in told
        assert name in paper or name.split()[-1] in paper
        line = next(one for panel in figure.panels for one in panel.lines if one.number == number)
        if line.role in (LineRole.MARKS, LineRole.SPANS):
            assert f"<title>{name}: " in page.replace("&#x27;", "'")
    assert not any(math.isnan(x) for panel in figure.panels for one in panel.lines for x in one.xs)


@pytest.fixture
def kept(tmp_path):
    """Return the store that has a trace as a run, and the trace."""
    path = tmp_path / "slow.pcap"
    path.write_bytes(slow())
    app.main(["packets", "--store", str(tmp_path / "runs.sqlite"), str(path)],
             standalone_mode=False)  # fmt: skip
    return tmp_path / "runs.sqlite", path


def test_a_trace_that_is_kept_is_drawn_from_its_file_the_most_data_first(kept, store, capsys):
    runs, path = kept
    (figure,) = draw(runs, wanted())
    assert figure.title == "slow"
    assert figure.about == "flow=10.0.0.2:80-10.0.0.1, connection=1, from=10.0.0.2:80"
    (captured,) = draw(store, wanted())
    assert figure.panels == captured.panels
    both = draw(runs, wanted(by=["flow"]))
    assert [one.about.split(", ")[-1] for one in both] == [
        "from=10.0.0.2:80", "from=10.0.0.1:50112",
    ]  # fmt: skip
    path.write_bytes(slow()[:-100])
    with pytest.raises(UsageError, match="it has changed since the run was kept"):
        draw(runs, wanted())


def test_a_kept_trace_is_read_only_once_for_a_figure(kept, monkeypatch):
    monkeypatch.setattr("benchctl.report.traced.read_trace", None)
    assert draw(kept[0], wanted())


def test_an_axis_over_time_shows_the_rates_of_a_sender_that_was_mostly_silent(tmp_path):
    segments = [
        (0, 0, tcp(0, 0, 0, 2)),
        (1_000, 1, tcp(1, 0, 1, 18)),
        *((at_us, 0, tcp(0, 1 + n * SIZE, 1, size=SIZE)) for n, at_us in enumerate((2_000, 10**7))),
        (10**7 + 1_000, 1, tcp(1, 1, 1 + 2 * SIZE)),
    ]
    path = tmp_path / "silent.pcap"
    path.write_bytes(pcap([(at * 1000, ethernet(ipv4(body, way))) for at, way, body in segments]))
    app.main(["packets", "--store", str(tmp_path / "runs.sqlite"), str(path)],
             standalone_mode=False)  # fmt: skip
    (figure,) = draw(tmp_path / "runs.sqlite", Wanted(PictureKind.TIME, y=["throughput_bps"]))
    (panel,) = figure.panels
    assert panel.y.high >= max(y for line in panel.lines for y in line.highs or line.ys if y == y)
    assert not any("beyond the axis" in note for note in figure.notes)


def figures_of_page(path):
    with closing(Reader(path)) as reader:
        return [*pictures_of(reader, read_report(reader, reader.find("last")))]


def test_a_report_has_the_packets_of_each_flow_and_says_if_their_file_is_gone(tmp_path):
    traced_run(tmp_path / "runs.sqlite")
    *_, last = figures_of_page(tmp_path / "runs.sqlite")
    assert last.figure.kind is PictureKind.SEQUENCE
    assert len(last.figure.panels) == len(PANELS)
    for file in tmp_path.rglob("*.pcapng"):
        file.unlink()
    *_, last = figures_of_page(tmp_path / "runs.sqlite")
    assert "main-a-1.pcapng: No such file" in last.text
