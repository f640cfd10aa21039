"""The plots of a trial together: which letter and colour a line has, and what a caption says."""

import re
import struct
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from benchctl.metrics import Vocabulary
from benchctl.report.lines.spans import to_text
from benchctl.report.timeline.traces import ALL, TimeWindow, TrialLines
from benchctl.store.bulk import SeriesSource
from benchctl.tui.draw.plot.charts import compose, rescaled
from benchctl.tui.draw.plot.choice import Choice
from benchctl.tui.model.zoom import View

FLOWS = tuple(f"h{n}-h{n + 4}" for n in range(1, 9))
VIEW = View(0.0, 10.0)


def traces_of(flows, metrics=("throughput_bps", "rtt_s"), ways=("send",), streams=1, among=FLOWS):
    """Return lines of flows of the run ``among``, each of two samples that differ by flow."""
    traces = TrialLines(TimeWindow(0.0, 10.0), flows, Vocabulary(), among)
    sources = {
        number: SeriesSource(flow, "iperf3", "client", stream, way, metrics, 0.0, streams)
        for number, (flow, way, stream) in enumerate(product(flows, ways, range(streams)))
    }
    for number in sources:
        data = struct.pack(f"<{len(metrics)}d", *([1e6 * (number + 1)] * len(metrics)))
        traces.add(sources, [(number, t, t + 5.0, data) for t in (0.0, 5.0)])
    return traces


def marks(traces, choice=Choice(), width=110, height=60):  # noqa: B008
    """Return the marks at the ends of lines, with their roles, plot by plot."""
    found: list[set[tuple[str, str]]] = []
    for line in compose(traces, choice, VIEW, width, height):
        if line[0].role == "strong":
            found.append(set())
            continue
        for text, role in line:
            mark = re.fullmatch(r"[^!-~]*([a-zA-Z]\d*)", text.strip())
            if mark and role.startswith("curve"):
                found[-1].add((mark[1], role))
    return found


@pytest.mark.parametrize("present", [FLOWS, FLOWS[2:3], FLOWS[5:], FLOWS[::3]])
def test_a_flow_has_one_letter_and_colour_in_every_plot_of_every_trial(present):
    own = {("abcdefgh"[FLOWS.index(flow)], f"curve-{FLOWS.index(flow)}") for flow in present}
    assert marks(traces_of(present)) == [own, own]


def test_hiding_a_line_changes_no_other():
    picked = Choice(picked=frozenset({(FLOWS[6], ALL)}))
    assert marks(traces_of(FLOWS), picked) == [{("g", "curve-6")}] * 2


def test_both_ways_of_a_flow_share_a_letter_and_are_told_apart_without_colour():
    assert (
        marks(traces_of(FLOWS[1:2], ways=("send", "receive")))
        == [{("b", "curve-1"), ("B", "curve-1")}] * 2
    )


def test_a_metric_of_single_streams_has_its_lines_with_the_flow_and_goes_with_it():
    traced = traces_of(FLOWS[:1], ("rtt_s", "hop_rtt_s"), streams=3)
    assert marks(traced) == [{("a", "curve-0")}, {(f"a{hop}", "curve-0") for hop in range(3)}]
    hidden = Choice(picked=frozenset({(FLOWS[1], ALL)}))
    assert not any(marks(traced, hidden))


def test_streams_have_the_letter_of_their_flow_and_their_number():
    picked = Choice(picked=frozenset((FLOWS[0], stream) for stream in range(12)))
    told = marks(traces_of(FLOWS[:1], streams=12), picked)
    assert {mark for mark, _ in told[1]} == {f"a{stream}" for stream in range(12)}
    assert {role for _, role in told[1]} == {"curve-0"}
    # Every plot gives the marks as much room, so that the time axes are aligned.
    lines = compose(traces_of(FLOWS[:2], streams=12), picked, VIEW, 110, 40)
    axes = [line for line in to_text(lines).splitlines() if "└" in line]
    assert len({line.rstrip() for line in (axis[8:] for axis in axes)}) == 1


@given(st.integers(0, 200), st.integers(1, 4))
def test_a_caption_tells_as_much_of_every_line_and_no_figure_in_part(width, count):
    caption = to_text(compose(traces_of(FLOWS[:count]), Choice(), VIEW, width, 8)[:1])
    assert len(caption) == width
    figures = [f"{n + 1}.00 Mbit/s" for n in range(count)]
    whole = [figure for figure in figures if f" {figure} " in caption]
    assert whole in ([], figures)
    if not whole:
        assert "Mbit" not in caption
    if width > 12 + 2 * count:
        assert all(f" {letter} " in caption for letter in "abcdefgh"[:count])


def steady(metric, values, spacing_s, streams=1, seconds=10.0):
    """Return lines of one flow: a sample of every stream each ``spacing_s``; ``values`` by time."""
    traces = TrialLines(TimeWindow(0.0, seconds), (), Vocabulary(), ("main",))
    sources = {
        stream: SeriesSource("main", "x", "client", stream, "send", (metric,), 0.0, streams)
        for stream in range(streams)
    }
    count = round(seconds / spacing_s)
    for n in range(count):
        rows = [
            (stream, n * spacing_s, (n + 1) * spacing_s, struct.pack("<d", values(n, stream)))
            for stream in range(streams)
        ]
        traces.add(sources, rows)
    traces.flush()
    return traces


def title(traces, choice=Choice(), width=110):  # noqa: B008
    return compose(traces, choice, VIEW, width, 20)[0][0].text.strip()


def roles(lines):
    return {span.role for line in lines for span in line}


def test_the_title_says_over_which_time_values_are_means():
    fine = steady("throughput_bps", lambda n, _: 1e6 * (n % 3), 0.025)
    assert title(fine) == "throughput, mean of 200 ms"
    assert title(fine, width=40) == "throughput, mean of 1 s"
    assert title(fine, Choice(log=True)) == "throughput, mean of 200 ms (log)"
    assert "faint-curve-0" in roles(compose(fine, Choice(), VIEW, 110, 20))


def test_values_as_they_are_need_no_words():
    fine = steady("throughput_bps", lambda n, _: 1e6 * (n % 3), 0.025)
    plain = Choice(smooth=False)
    assert title(fine, plain) == "throughput"
    assert "faint-curve-0" not in roles(compose(fine, plain, VIEW, 110, 20))
    assert title(steady("throughput_bps", lambda n, _: 1e6 * n, 0.5)) == "throughput"


def test_counts_are_never_smoothed_nor_cut():
    seldom = steady("retransmits", lambda n, _: 300.0 if n == 200 else 0.0, 0.025)
    lines = compose(seldom, Choice(), VIEW, 110, 20)
    assert lines[0][0].text.strip() == "retransmits"
    assert "▲" not in to_text(lines)
    (top,) = [line for line in to_text(lines).splitlines() if line.split()[:2] == ["300", "┤"]]
    assert top[9:].strip()


@pytest.mark.parametrize("metric", ["tcp_rtt_s", "cwnd_bytes"])
def test_eight_streams_are_their_median_in_a_band(metric):
    traces = steady(metric, lambda _, stream: (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 90.0)[stream],
                    0.5, streams=8)  # fmt: skip
    lines = compose(traces, Choice(smooth=False), VIEW, 110, 20)
    assert lines[0][0].text.strip().endswith("median of 8 streams")
    assert "4.5" in lines[0][1].text
    assert "faint-curve-0" in roles(lines)


def test_single_streams_are_drawn_on_request():
    traces = traces_of(FLOWS[:1], ("tcp_rtt_s",), streams=8)
    assert marks(traces) == [{("a", "curve-0")}]
    one = Choice(picked=frozenset({(FLOWS[0], 3)}))
    assert marks(traces, one) == [{("a3", "curve-0")}]
    assert "median" not in title(traces, one)


def test_the_expected_value_of_a_flow_is_drawn_in_its_plot_only():
    traces = traces_of(FLOWS[:2])
    expected = {(FLOWS[0], "send", "throughput_bps"): 2.5e6}
    shown = to_text(compose(traces, Choice(), VIEW, 110, 40, expected))
    assert shown.count("expected") == 1
    assert "a expected 2.5" in shown


def test_the_values_to_show_can_be_chosen_for_each_metric():
    traces = traces_of(FLOWS[:2])
    part = Choice(bounds={"throughput_bps": (1.5e6, 4e6)})
    shown = to_text(compose(traces, part, VIEW, 110, 40)).split("RTT")
    assert "▼1" in shown[0]
    assert "▼" not in shown[1]


def test_values_are_zoomed_and_panned_and_all_of_them_come_back():
    traces = traces_of(FLOWS[::2])

    def rescale(choice, how, steps):
        return rescaled(traces, choice, VIEW, 110, 40, {}, how, steps)

    closer = rescale(Choice(), "zoom", 1)
    ((metric, (low, high)),) = closer.bounds.items()
    assert metric == "throughput_bps"
    assert 0 < low < high < 4e6
    ((_, (higher, highest)),) = rescale(closer, "pan", 1).bounds.items()
    assert (higher, highest) == pytest.approx((low + (high - low) / 4, high + (high - low) / 4))
    assert rescale(closer, "zoom", -1).bounds == {}
    second = replace(closer, first=1)
    assert set(rescale(second, "zoom", 1).bounds) == {"throughput_bps", "rtt_s"}
    assert rescaled(traces, closer, VIEW, 5, 1, {}, "zoom", 1) == closer
    shown = to_text(compose(traces, rescale(closer, "zoom", 1), VIEW, 110, 40))
    assert "▲4" in shown
    assert "▼1" in shown


@pytest.mark.parametrize("height", range(8, 24))
@pytest.mark.parametrize("log", [False, True])
def test_every_zoom_and_pan_of_the_values_is_seen(height, log):
    traces = traces_of(FLOWS[::2])
    now = Choice(log=log)
    seen = compose(traces, now, VIEW, 110, height)
    for how, steps in [("zoom", 1)] * 4 + [("pan", 1), ("pan", -1)] * 2 + [("zoom", -1)] * 8:
        before, seen_before = now, seen
        now = rescaled(traces, before, VIEW, 110, height, {}, how, steps)
        seen = compose(traces, now, VIEW, 110, height)
        assert seen_before != seen or not (before.bounds or now.bounds), (how, steps)
    assert not now.bounds


def test_more_than_four_flows_have_a_plot_each_with_one_scale():
    """Eight flows in 30 lines: three rows each, name and figure beside them."""
    lines = to_text(compose(traces_of(FLOWS), Choice(), VIEW, 110, 30)).splitlines()
    assert lines[0].split() == ["throughput,", "one", "scale"]
    for place, flow in enumerate(FLOWS):
        rows = lines[1 + 3 * place : 4 + 3 * place]
        assert [row[:8].split() for row in rows] == [["10"], [], ["0"]]
        mark = "abcdefgh"[place]
        assert rows[0].endswith(f"{mark} {flow:<14}")
        assert rows[1].rstrip().endswith(f"{place + 1}.00 Mbit/s")
        height = next(n for n, row in enumerate(reversed(rows)) if "⣀⡀⠤⠒⠉".find(row[70]) >= 0)
        assert height == round((place + 1) / 10 * 2 + 1e-6)
    assert len(lines) == 1 + 8 * 3 + 2


def test_where_eight_have_no_room_the_one_under_the_cursor_is_drawn():
    for here, letter in (("", "a"), (FLOWS[4], "e")):
        lines = to_text(compose(traces_of(FLOWS), Choice(here=here), VIEW, 78, 10)).splitlines()
        assert lines[0].startswith(f"throughput, 1 of 8 flows  {letter} ")
        assert len(lines) == 10


def test_what_is_zoomed_out_of_sight_is_marked_in_each():
    part = Choice(bounds={"throughput_bps": (3e6, 5e6)})
    text = to_text(compose(traces_of(FLOWS, ("throughput_bps",)), part, VIEW, 110, 54))
    assert [value for value in "12345678" if f"▲{value}" in text] == ["6", "7", "8"]
    assert [value for value in "12345678" if f"▼{value}" in text] == ["1", "2"]


def test_a_change_of_the_lab_is_marked_once_and_the_scale_stays_one():
    traces = traces_of(FLOWS, ("throughput_bps",))
    traces.changes = [(7.0, "core 20 Mbit/s")]
    text = to_text(compose(traces, Choice(), VIEW, 110, 54))
    assert text.count("◆core 20 Mbit/s") == 1
    assert text.count("10 ┤") == text.count(" 0 ┤") == len(FLOWS)


def test_a_change_of_the_lab_has_its_sign_where_eight_flows_have_no_room_for_words():
    traces = traces_of(FLOWS, ("throughput_bps",))
    traces.changes = [(7.0, "core 20 Mbit/s")]
    lines = to_text(compose(traces, Choice(), VIEW, 110, 30)).splitlines()
    marked = [number for number, line in enumerate(lines) if "◆" in line]
    assert marked == [3]  # the lowest row of the first flow
    assert "core" not in "".join(lines)
