"""Any bytes, split anywhere, give the same events or ParserError, and nothing else."""

import json
import math
from contextlib import suppress
from copy import deepcopy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from iperf3.iperf3_support import SAMPLES, flow, parser_of, transcript

from benchctl.api import Channel, Event, ParserError, Sample, Summary, replay
from benchctl_iperf3.stream import JsonStream
from benchctl_iperf3.text import TextClient, TextServer

NAMES = sorted(
    str(path.relative_to(SAMPLES).with_suffix("")) for path in SAMPLES.glob("*/*.out")
    if not path.stem.startswith("version")
)  # fmt: skip
JSON_NAMES = [name for name in NAMES if transcript(name).stdout.startswith(b"{")]
PARSERS = (JsonStream, TextClient, TextServer)
WORDS = (
    b"[  5]   0.00-1.00   sec  4.29 GBytes  36812345 Kbits/sec    1    895 KBytes       \n",
    b"[  5]   0.00-1.00   sec  2.38 MBytes  19988 Kbits/sec  0.013 ms  0/1727 (0%)  receiver\n",
    b"[SUM]   0.00-1.00   sec  0.00 Bytes  -nan Kbits/sec                  \n",
    b"[  5]   0.00-1.00   sec  4.29 GBytes  36.8.1 Kbits/sec\n",
    b"tcpi_snd_cwnd 58 tcpi_snd_mss 65483 tcpi_rtt 656\n",
    b"interval_len 1.002232 bytes_transferred 1538785280\n",
    b"get_results\n", b"send_results\n", b"{\n", b"}\n",
    b'{"event":"start","data":', b'{"event":"interval","data":{"streams":[{"socket":5,',
    b'{"event":"end","data":{}}\n', b'"sender":true,"bytes":', b"1e999", b"[" * 2000, b"9" * 5000,
    b"Server listening on 5201\n", b"\r\n", b"\xff\xfe", b"\x00", b"\n", b"}}\n", b"]", b"null",
)  # fmt: skip

garbage = st.lists(st.sampled_from(WORDS) | st.binary(max_size=30), max_size=30).map(b"".join)
directions = st.sampled_from(["send", "receive", "both"])
protocols = st.sampled_from(["tcp", "udp"])
odd_values = st.sampled_from(
    [None, True, "x", "", -1, 0, 1e308, -0.5, 2**64, 10**400, math.nan, math.inf, [], {}, [1]]
)


def assert_sound(told):
    """Check that every figure is a finite number."""
    for event in told:
        assert isinstance(event, Event)
        if isinstance(event, Sample | Summary):
            for value in event.metrics.values():
                for figure in value.values() if isinstance(value, dict) else [value]:
                    assert math.isfinite(figure)


def assert_events_or_parser_error(parser, stdout, stderr=b"", exit_code=0):
    with suppress(ParserError):
        assert_sound(replay(parser, stdout, stderr, exit_code))


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_any_cut_of_a_transcript_gives_equal_events(name, data):
    told = transcript(name)
    cuts = data.draw(st.lists(st.integers(0, len(told.stdout)), max_size=20))
    direction = "both" if "both" in name or "bidir" in name else "send"
    whole, cut = (
        replay(parser_of(name, direction), told.stdout, told.stderr, told.exit_code, at)
        for at in ((), cuts)
    )
    assert cut == whole
    assert_sound(whole)


@pytest.mark.parametrize(
    "name", ["3.12/tcp_both_P2.client", "3.12/tcp_both_P2.server", "3.21/json_stream_bidir"]
)
def test_byte_by_byte_gives_the_same_events(name):
    told = transcript(name)
    whole = replay(parser_of(name, "both"), told.stdout)
    assert replay(parser_of(name, "both"), told.stdout, cuts=range(len(told.stdout))) == whole


@pytest.mark.parametrize("parser", PARSERS)
@settings(deadline=None)
@given(
    stdout=garbage,
    stderr=garbage,
    exit_code=st.integers(-200, 255),
    direction=directions,
    protocol=protocols,
)
def test_garbage_gives_events_or_parser_error(
    parser, stdout, stderr, exit_code, direction, protocol
):
    assert_events_or_parser_error(
        parser(flow(direction, protocol=protocol)), stdout, stderr, exit_code
    )


@settings(deadline=None)
@given(
    name=st.sampled_from(NAMES),
    direction=directions,
    protocol=protocols,
    changes=st.lists(st.tuples(st.integers(0), st.integers(0, 255)), max_size=30),
    dropped=st.sets(st.integers(0, 200), max_size=5),
)
def test_a_damaged_transcript_gives_events_or_parser_error(
    name, direction, protocol, changes, dropped
):
    told = bytearray(transcript(name).stdout)
    for position, value in changes if told else ():
        told[position % len(told)] = value
    lines = bytes(told).splitlines(keepends=True)
    stdout = b"".join(line for index, line in enumerate(lines) if index not in dropped)
    assert_events_or_parser_error(parser_of(name, direction, protocol=protocol), stdout)


def _places(value, path=()):
    """Return the path of every value inside a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in inner:
        yield (*path, key)
        if isinstance(item, dict | list):
            yield from _places(item, (*path, key))


@settings(deadline=None)
@given(
    name=st.sampled_from(JSON_NAMES),
    direction=directions,
    data=st.data(),
)
def test_json_values_of_other_types_give_events_or_parser_error(name, direction, data):
    lines = [json.loads(line) for line in transcript(name).stdout.splitlines()]
    for line in data.draw(st.lists(st.sampled_from(lines), max_size=4)):
        *path, last = data.draw(st.sampled_from(list(_places(line))))
        place = line
        for key in path:
            place = place[key]
        place[last] = deepcopy(data.draw(odd_values))
    stdout = "".join(json.dumps(line) + "\n" for line in lines).encode()
    assert_events_or_parser_error(JsonStream(flow(direction)), stdout)


@pytest.mark.parametrize("depth", [500, 950, 1000, 100_000])
def test_deep_json_is_refused_without_a_recursion_error(depth):
    nested = b"[" * depth + b"]" * depth
    for frame in (b'{"event":%s}', b'{"event":"start","data":%s}', b'{"event":"error","data":%s}'):
        assert_events_or_parser_error(JsonStream(flow()), frame % nested + b"\n")


@pytest.mark.parametrize("parser", PARSERS)
def test_a_line_without_an_end_does_not_fill_the_memory(parser):
    endless = b"x" * (2 << 20)
    with pytest.raises(ParserError, match="a line of more than"):
        replay(parser(flow()), endless, cuts=range(0, len(endless), 4096))


def test_results_without_an_end_are_given_up():
    with pytest.raises(ParserError, match="not JSON"):
        TextClient(flow()).feed(b"get_results\n" + b"{\n" * 10_000)


def test_streams_without_number_are_refused():
    row = b"[%3d] local 192.0.2.1 port 1 connected to 192.0.2.2 port 2\n"
    with pytest.raises(ParserError, match="more than 256 streams"):
        TextClient(flow()).feed(b"".join(row % socket for socket in range(300)))


def test_a_row_that_only_looks_like_one_is_refused():
    with pytest.raises(ParserError, match="not a line of iperf3's table"):
        TextClient(flow()).feed(WORDS[3])


def test_a_rate_over_no_time_at_all_is_no_row():
    assert list(TextClient(flow()).feed(WORDS[2])) == []


@pytest.mark.parametrize("parser", PARSERS)
def test_words_on_stderr_are_kept_short(parser):
    quiet = parser(flow())
    for _ in range(100):
        quiet.feed(b"y" * 100_000 + b"\n", Channel.STDERR)
    [*_, failure] = quiet.close(1)
    assert len(failure.message) <= 500
