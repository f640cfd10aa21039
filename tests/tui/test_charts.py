"""The plots of a trial together: which letter and colour a line has, and what a caption says."""

import re
import struct
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.metrics import Vocabulary
from benchctl.store.bulk import SeriesSource
from benchctl.tui.draw.charts import Choice, compose
from benchctl.tui.draw.spans import to_text
from benchctl.tui.model.traces import ALL, TimeWindow, Traces
from benchctl.tui.model.zoom import View

FLOWS = tuple(f"h{n}-h{n + 4}" for n in range(1, 9))
VIEW = View(0.0, 10.0)


def traces_of(flows, metrics=("throughput_bps", "rtt_s"), ways=("send",), streams=1, among=FLOWS):
    """Return lines of flows of the run ``among``, each of two samples that differ by flow."""
    traces = Traces(TimeWindow(0.0, 10.0), flows, Vocabulary(), among)
    sources = {
        number: SeriesSource(flow, "iperf3", "client", stream, way, metrics, 0.0, streams)
        for number, (flow, way, stream) in enumerate(product(flows, ways, range(streams)))
    }
    for number in sources:
        data = struct.pack(f"<{len(metrics)}d", *([1e6 * (number + 1)] * len(metrics)))
        traces.add(sources, [(number, t, t + 5.0, data) for t in (0.0, 5.0)])
    return traces


def marks(traces, choice=Choice(), width=110, height=40):  # noqa: B008
    """Return the marks at the ends of lines, with their roles, plot by plot."""
    found: list[set[tuple[str, str]]] = []
    for line in compose(traces, choice, VIEW, width, height):
        if line[0].role == "strong":
            found.append(set())
            continue
        for text, role in line:
            mark = re.search(r"[a-zA-Z]\d*$", text.strip())
            if mark and role.startswith("curve"):
                found[-1].add((mark[0], role))
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


def test_streams_have_the_letter_of_their_flow_and_their_number():
    picked = Choice(picked=frozenset((FLOWS[0], stream) for stream in range(12)))
    told = marks(traces_of(FLOWS[:1], streams=12), picked)
    assert {mark for mark, _ in told[1]} == {f"a{stream}" for stream in range(12)}
    assert {role for _, role in told[1]} == {"curve-0"}
    # Every plot gives the marks as much room, so that the time axes are aligned.
    lines = compose(traces_of(FLOWS[:2], streams=12), picked, VIEW, 110, 40)
    axes = [line for line in to_text(lines).splitlines() if "└" in line]
    assert len({line.rstrip() for line in (axis[8:] for axis in axes)}) == 1


@given(st.integers(0, 200), st.integers(1, 8))
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
