"""What iperf3 does not print is refused, and what it may print without an end is kept short."""

import pytest
from iperf3.iperf3_support import flow

from benchctl.api import Channel, ParserError, replay
from benchctl_iperf3.stream import JsonStream
from benchctl_iperf3.text import TextClient, TextServer

NO_ROW = b"[  5]   0.00-1.00   sec  4.29 GBytes  36.8.1 Kbits/sec\n"
NO_TIME = b"[SUM]   0.00-1.00   sec  0.00 Bytes  -nan Kbits/sec                  \n"


def test_results_without_an_end_are_given_up():
    with pytest.raises(ParserError, match="not JSON"):
        TextClient(flow()).feed(b"get_results\n" + b"{\n" * 10_000)


def test_streams_without_number_are_refused():
    row = b"[%3d] local 192.0.2.1 port 1 connected to 192.0.2.2 port 2\n"
    with pytest.raises(ParserError, match="more than 256 streams"):
        TextClient(flow()).feed(b"".join(row % socket for socket in range(300)))


def test_a_row_that_only_looks_like_one_is_refused():
    with pytest.raises(ParserError, match="not a line of iperf3's table"):
        TextClient(flow()).feed(NO_ROW)


def test_an_interval_that_ends_before_it_begins_is_refused():
    row = b"[  5]   9.00-1.00   sec  4.29 GBytes  36812345 Kbits/sec    1    895 KBytes       \n"
    with pytest.raises(ParserError, match=r"an interval from 9\.0 to 1\.0"):
        replay(TextClient(flow()), row)


def test_a_rate_over_no_time_at_all_is_no_row():
    assert list(TextClient(flow()).feed(NO_TIME)) == []


@pytest.mark.parametrize("parser", [JsonStream, TextClient, TextServer])
def test_words_on_stderr_are_kept_short(parser):
    quiet = parser(flow())
    for _ in range(100):
        quiet.feed(b"y" * 100_000 + b"\n", Channel.STDERR)
    [*_, failure] = quiet.close(1)
    assert len(failure.message) <= 500
