"""Time-sequence diagrams: the same points as tcptrace's, thinned without a loss."""

import re
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packets.simulated import Plan, Transfer
from packets.slow import slow
from packets.written import trace_of

from benchctl.packets import timesequence
from benchctl.packets.timesequence import UNKNOWN, Steps, Strokes, TimeSequence
from benchctl.packets.trace import read_trace

_LOSSES = frozenset({(50, 0), (120, 0), (121, 0), (200, 0), (200, 1)})
TRACES = {
    "every cause": (slow, 1),
    "at the sender": (lambda: trace_of(Transfer(Plan(
        segments=300, window=20, lost_after=_LOSSES, pause_after=frozenset({160}), isn=0,
    ))), 0),
    "at the receiver": (lambda: trace_of(Transfer(Plan(
        segments=300, window=20, here=1.0, lost_before=_LOSSES, isn=0,
    ))), 0),
}  # fmt: skip


def sequence_of(path, way, begin_s=float("-inf"), end_s=float("inf")):
    """Return what a diagram of the first connection shows, and the connection."""
    made = []

    def watch(number, connection):
        if number == 1:
            made.append(TimeSequence(connection.halves[way], begin_s, end_s))

    connection = read_trace(path, watch).connections[0]
    return made[0], connection


@pytest.fixture(scope="module", params=TRACES)
def theirs(request, tmp_path_factory):
    """Return a trace, whose data we look at, and the lines of tcptrace's diagram by its colours."""
    data, way = TRACES[request.param]
    folder = tmp_path_factory.mktemp("xpl")
    path = folder / "trace.pcap"
    path.write_bytes(data())
    subprocess.run(["tcptrace", "-n", "-S", path], cwd=folder, capture_output=True, check=True)
    text = (folder / ("a2b_tsg.xpl", "b2a_tsg.xpl")[way]).read_text()
    began_s = read_trace(path).capture.began_ns / 1e9
    drawn, colour = {}, ""
    for line in text.splitlines():
        if re.fullmatch(r"[a-z]+", line):
            colour = line
        elif line.startswith("line "):
            t0, low, t1, high, *own = line.split()[1:]
            times = (round((float(t) - began_s) * 1e6) for t in (t0, t1))
            place = (next(times), int(low), next(times), int(high))
            drawn.setdefault((own or [colour])[0], []).append(place)
    return path, way, drawn


def us(time_s):
    return round(time_s * 1e6)


@pytest.mark.tool("tcptrace")
def test_tcptrace_draws_the_same_segments(theirs):
    path, way, drawn = theirs
    ours, connection = sequence_of(path, way)
    again = connection.halves[way].retransmissions
    segments = [
        (us(t), start, end)
        for one in (ours.fresh, ours.late, ours.doubled)
        for t, start, end in zip(one.times_s, one.starts, one.ends, strict=True)
    ]
    if again:
        segments += zip(map(us, again.times_s), again.starts, again.ends, strict=True)
    lines = [one for colour in ("white", "orange", "red") for one in drawn.get(colour, ())]
    assert sorted(segments) == sorted((t0, low, high) for t0, low, t1, high in lines if t0 == t1)


def line_of(drawn, colour):
    """Return the values that a line of tcptrace has after each moment, and the moments."""
    values = {}
    for t0, low, t1, high in drawn[colour]:
        values[t0], values[t1] = low, high
    return values


@pytest.mark.tool("tcptrace")
@pytest.mark.parametrize(("colour", "line"), [("green", "acked"), ("yellow", "edge")])
def test_tcptrace_draws_the_same_lines_of_acknowledgements_and_window(theirs, colour, line):
    path, way, drawn = theirs
    ours, _ = sequence_of(path, way)
    values = line_of(drawn, colour)
    assert len(values) > 15
    assert {t: getattr(ours, line).at(t / 1e6 + 1e-9) for t in values} == values


@pytest.mark.tool("tcptrace")
def test_tcptrace_draws_the_same_blocks_of_sack(theirs):
    path, way, drawn = theirs
    ours, connection = sequence_of(path, way)
    blocks = zip(map(us, ours.sacked.times_s), ours.sacked.starts, ours.sacked.ends, strict=True)
    lines = sorted((t0, low, high) for t0, low, _, high in drawn["purple"])
    assert sorted(blocks) == lines
    assert len(lines) == connection.halves[way].sack_blocks


SEGMENTS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(-3, 30), st.integers(1, 20)), min_size=1, max_size=300
)


@given(SEGMENTS, st.integers(2, 50))
def test_thinned_strokes_cover_all_that_was_sent_and_little_else(segments, dots):
    strokes, covered, time_s = Strokes(), set(), 0
    for wait, gap, size in segments:
        time_s += wait
        start = max(0, strokes.ends[-1] + gap) if strokes else 0
        strokes.add(float(time_s), start, start + size)
        covered |= {*range(start, start + size)}
    span = max(strokes.ends) - min(strokes.starts)
    times = {*strokes.times_s}
    strokes.thin(dots)
    drawn = set()
    for start, end in zip(strokes.starts, strokes.ends, strict=True):
        drawn |= {*range(start, end)}
    assert covered <= drawn
    gaps = len(segments) * (span // dots)
    assert len(drawn - covered) <= gaps
    assert {*strokes.times_s} <= times
    assert strokes.count == len(segments)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), min_size=1), st.integers(1, 50))
def test_a_thinned_line_keeps_its_extremes_and_its_ends(steps, dots):
    line, time_s = Steps(), 0
    for wait, value in steps:
        time_s += wait
        line.add(float(time_s), value)
    before = [*zip(line.times_s, line.values, strict=True)]
    line.thin(dots)
    after = [*zip(line.times_s, line.values, strict=True)]
    assert {*after} <= {*before}
    assert (after[0], after[-1]) == (before[0], before[-1])
    for of in (min, max):
        assert of(line.values) == of(value for _, value in before)
    assert len(after) <= 4 * (dots + 2)


def test_memory_is_bounded_however_much_is_sent(monkeypatch):
    monkeypatch.setattr(timesequence, "MOST", 400)
    monkeypatch.setattr(timesequence, "DOTS", 100)
    strokes, line = Strokes(), Steps()
    for n in range(20_000):
        time_s = (n - n % 7 * 3) / 10  # packets that are earlier than the one before
        strokes.add(time_s, 3000 * n, 3000 * n + 1000)  # every third byte
        line.add(time_s, n * 7919 % 1000)
        assert len(strokes) <= 401
        assert len(line) <= 801
    assert strokes.count == 20_000


def test_of_a_time_only_that_is_kept_and_lines_begin_with_their_value_there(tmp_path):
    path = tmp_path / "trace.pcap"
    path.write_bytes(slow())
    whole, _ = sequence_of(path, 1)
    part, _ = sequence_of(path, 1, 2.6, 3.0)
    assert part.acked.times_s[0] == part.edge.times_s[0] == 2.6
    for t in (2.6, 2.634, 2.636, 2.9):
        assert part.acked.at(t) == whole.acked.at(t)
        assert part.edge.at(t) == whole.edge.at(t)
    assert not part.fresh
    assert [*part.probes.times_s] == pytest.approx([2.835])
    assert part.closed_at == whole.closed_at


def test_without_its_scale_the_window_is_unknown(tmp_path):
    path = tmp_path / "trace.pcap"
    path.write_bytes(trace_of(Transfer(Plan(handshake=False))))
    ours, _ = sequence_of(path, 0)
    assert {*ours.edge.values} == {UNKNOWN}
    assert max(ours.flight_bytes.values) == 8000
