"""Any bytes, split anywhere, give events or ParserError, and nothing else."""

import math
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from iperf2.iperf2_support import TRANSCRIPTS, flow

from benchctl.api import ParserError, Sample, Summary, replay
from benchctl.testing.transcript import Transcript
from benchctl_iperf2 import BACKEND
from benchctl_iperf2.client import ClientReport
from benchctl_iperf2.rows import read_row
from benchctl_iperf2.server import ServerReport

PATHS = sorted(TRANSCRIPTS.glob("*.json"))
WORDS = (
    b"[  1] 0.00-1.00 sec  131072 Bytes  1048576 bits/sec  1/0  0  14K/50(25) us  26\n",
    b"[ *1] 0.00-1.00 sec  131072 Bytes  1048576 bits/sec  4=2:0:0:0:0:0:0:2\n",
    b"[  1] 0.00-1.00 sec  1448 Bytes  11584 bits/sec 0.01 ms 0/1 (0%) 1.0/0.1/2.0/0.1 ms 1 pps\n",
    b"[  2] 0.00-0.00 sec  1448 Bytes  11584 bits/sec  0.013 ms 0/0 (-nan%) -/-/-/- ms 0 pps\n",
    b"[SUM] 0.00-1.00 sec  -nan Bytes  inf bits/sec\n", b"[  1] Server Report:\n", b"[FD1] ",
    b"[  1] 9.00-1.00 sec  1.5.1 Bytes  1048576 bits/sec\n", b"[  1] Sent 177 datagrams\n",
    b"[  1] 0.00-1.00 sec  5 datagrams received out-of-order\n", b"9" * 5000, b"[" * 2000,
    b"Server listening on TCP port 5001\n", b"tcp connect failed: Connection refused\n",
    b"TCP window size: -1.00 Byte (default)\n", b"\xff\xfe", b"\x00", b"\r\n", b"\n",
)  # fmt: skip
garbage = st.lists(st.sampled_from(WORDS) | st.binary(max_size=30), max_size=30).map(b"".join)


def assert_sound(told):
    for event in told:
        if isinstance(event, Sample | Summary):
            for value in event.metrics.values():
                for figure in value.values() if isinstance(value, dict) else [value]:
                    assert math.isfinite(figure)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
@settings(max_examples=5, deadline=None)
@given(data=st.data())
def test_any_cut_of_a_transcript_gives_equal_events(path, data):
    transcript = Transcript.load(path)
    cuts = data.draw(st.lists(st.integers(0, len(transcript.stdout)), max_size=20))
    whole, cut = (transcript.replay(transcript.parser(BACKEND), at) for at in ((), cuts))
    assert cut == whole
    assert_sound(whole)


@pytest.mark.parametrize("parser", [ClientReport, ServerReport])
@settings(deadline=None)
@given(
    stdout=garbage,
    stderr=garbage,
    exit_code=st.integers(-200, 255),
    direction=st.sampled_from(["send", "receive", "both"]),
    protocol=st.sampled_from(["tcp", "udp"]),
)
def test_garbage_gives_events_or_parser_error(
    parser, stdout, stderr, exit_code, direction, protocol
):
    one = parser(flow(direction, protocol=protocol, trip_times=True), 1.0)
    with suppress(ParserError):
        assert_sound(replay(one, stdout, stderr, exit_code))


@given(st.text("0123456789.-+[]/ KMGBytesbitsec%(:=)", max_size=120))
def test_a_line_is_a_row_or_none_or_a_parser_error(text):
    with suppress(ParserError):
        read_row(f"[  1] {text}")


@pytest.mark.parametrize("parser", [ClientReport, ServerReport])
def test_streams_without_end_are_a_parser_error(parser):
    lines = b"".join(b"[%d] 0.0-1.0 sec  1 Bytes  8 bits/sec\n" % number for number in range(999))
    with pytest.raises(ParserError, match="more than 256 streams"):
        replay(parser(flow(), 1.0), lines)
