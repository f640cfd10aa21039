"""simpleperf as a backend: its parameters, its commands, and what its lines become."""

import json
import math
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from contract import BundledContract, kept, said
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from simpleperf.simpleperf_harness import REPEATABLE
from waiting import DEADLINE_S

from benchctl.api import (
    METRICS,
    Channel,
    Direction,
    Effective,
    Failure,
    FailureKind,
    Flow,
    ParserError,
    Ready,
    Role,
    Sample,
    Started,
    Summary,
    Tool,
    Warn,
    replay,
)
from benchctl_simpleperf import BACKEND
from benchctl_simpleperf.parameters import OWN_METRICS
from benchctl_simpleperf.simpleperf.program.flags import (
    asked_of,
    parse_flags,
    settings_of,
    target_of,
)
from benchctl_standalone.errors import Problem

PLAIN_TCP = BACKEND.parameters()


def flow(direction=Direction.SEND, address="127.0.0.1", port=8088, **params):
    return Flow(BACKEND.parameters(**params), direction, address, port, Tool("2.1.0"), True)


def settings_asked(the_flow):
    """Return what the client's own flags make of a command."""
    argv = BACKEND.client(the_flow).argv
    return parse_flags(argv[argv.index("-c") :])


# --- parameters -----------------------------------------------------------------------------


def test_defaults_are_those_of_the_tool():
    for params in ({}, {"protocol": "udp"}):
        asked = settings_of(settings_asked(flow(**params)))
        by_itself = settings_of(parse_flags(["-c", *(["-u"] if params else [])]))
        assert asked == by_itself._replace(interval_s=1.0)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"bytes": "1MB", "duration": "1s"}, "give either"),
        ({"duration": None}, "give either"),
        ({"interval": "1ms"}, "0.01"),
        ({"streams": 129}, "128"),
        ({"protocol": "udp", "mss": "1448B"}, "mss is for TCP only"),
        ({"protocol": "udp", "zero_copy": True}, "zero_copy is for TCP only"),
        ({"protocol": "udp", "length": "8B"}, "16 to 65507"),
        ({"protocol": "udp", "length": "64K"}, "16 to 65507"),
        ({"plain": True, "omit": "1s"}, "omit is for the control protocol only"),
        ({"plain": True, "server_window": "64K"}, "server_window is for the control protocol only"),
        ({"plain": True, "rate": "1Mbit"}, "rate is for the control protocol only"),
        ({"plain": True, "protocol": "udp"}, "TCP only"),
        ({"congestion_control": "no such"}, "pattern"),
        ({"dscp": 64}, "dscp"),
        ({"rate": "10"}, "unit"),
        ({"nosuch": 1}, "nosuch"),
    ],
)
def test_parameters_that_do_not_fit_are_refused(params, words):
    with pytest.raises(ValidationError, match=words):
        BACKEND.parameters(**params)


def test_what_a_flow_takes_is_foreseen():
    assert BACKEND.duration_s(BACKEND.parameters(duration="5s", omit="1s")) == 6
    assert BACKEND.duration_s(BACKEND.parameters(bytes="1MB", rate="8Mbit", streams=2)) == 0.5
    assert BACKEND.duration_s(BACKEND.parameters(bytes="10MB")) == 8
    assert BACKEND.traffic_bytes(BACKEND.parameters(bytes="10MB")) == 10e6
    assert BACKEND.traffic_bytes(BACKEND.parameters(duration="8s", rate="1Mbit", streams=2)) == 2e6
    assert BACKEND.traffic_bytes(PLAIN_TCP) is None


# --- commands -------------------------------------------------------------------------------


def test_every_parameter_reaches_the_tool():
    everything = {
        "duration": "2500ms", "omit": "500ms", "interval": "25ms", "streams": 3, "rate": "20Mbit",
        "length": "64K", "window": "256K", "mss": "1400B", "congestion_control": "bbr",
        "dscp": "af41", "ip_version": 4, "no_delay": True, "zero_copy": True,
        "connect_timeout": "2s",
    }  # fmt: skip
    the_flow = replace(
        flow(Direction.BOTH, "10.0.0.2", 9001, **everything),
        source_address="10.0.0.1", source_device="eth0", start_at_s=1795224664.25,
    )  # fmt: skip
    flags = settings_asked(the_flow)
    assert settings_of(flags)._asdict() == {
        "protocol": "tcp", "directions": ("send", "receive"), "streams": 3, "duration_s": 2.5,
        "total_bytes": None, "omit_s": 0.5, "interval_s": 0.025, "length_bytes": 65536,
        "window_bytes": 262144, "mss_bytes": 1400, "congestion_control": "bbr", "no_delay": True,
        "dscp": 34, "rate_bps": 20e6, "zero_copy": True,
    }  # fmt: skip
    target = target_of(flags)
    assert (target.host, target.port, target.source) == ("10.0.0.2", 9001, "10.0.0.1")
    assert (target.device, target.timeout_s, flags.start_at) == ("eth0", 2.0, 1795224664.25)
    assert target.family != 0


@pytest.mark.parametrize(
    ("given", "client", "server"),
    [
        ({"window": "64K"}, 65536, 65536),
        ({"client_window": "64K"}, 65536, None),
        ({"server_window": "64K"}, None, 65536),
        ({"window": "64K", "server_window": "1M"}, 65536, 1 << 20),
    ],
)
def test_each_end_is_asked_for_a_window_of_its_own(given, client, server):
    flags = settings_asked(flow(**given))
    assert (settings_of(flags).window_bytes, asked_of(flags).window_bytes) == (client, server)


def test_udp_and_bytes_reach_the_tool():
    asked = settings_of(settings_asked(flow(Direction.RECEIVE, protocol="udp", bytes="3MB")))
    assert (asked.protocol, asked.directions) == ("udp", ("receive",))
    assert (asked.total_bytes, asked.duration_s, asked.rate_bps) == (3_000_000, None, 1e6)
    unlimited = settings_asked(flow(protocol="udp", rate="unlimited"))
    assert settings_of(unlimited).rate_bps is None


def test_plain_flows_speak_the_plain_protocol():
    flags = settings_asked(flow(plain=True, streams=2, duration="3s", window="64K"))
    assert flags.plain
    assert settings_of(flags).streams == 2


def test_plain_flows_only_send():
    with pytest.raises(ValueError, match="can only send"):
        BACKEND.client(flow(Direction.RECEIVE, plain=True))


def test_the_server_listens_where_the_client_looks_and_ends_by_itself():
    argv = BACKEND.server(flow(address="10.0.0.2", port=9001)).argv
    flags = parse_flags(argv[argv.index("-s") :])
    assert (flags.bind, flags.port, flags.one_off, flags.events) == ("10.0.0.2", 9001, True, True)


@given(st.floats(1e3, 1e12) | st.just(math.inf), st.floats(0.001, 86400))
@REPEATABLE
def test_any_number_is_written_so_that_the_tool_reads_it_again(rate, duration):
    params = BACKEND.parameters.model_construct(
        **{**BACKEND.parameters(protocol="udp").model_dump(), "rate": rate, "duration": duration}
    )
    the_flow = Flow(params, Direction.SEND, "127.0.0.1", 1, Tool("2"))
    asked = settings_of(settings_asked(the_flow))
    assert asked.duration_s == pytest.approx(duration, abs=1e-6)
    assert (asked.rate_bps or math.inf) == pytest.approx(rate)


def test_the_tool_is_found_and_tells_its_version():
    probe = BACKEND.probe(Role.CLIENT)
    done = subprocess.run(probe.argv, capture_output=True, text=True, check=True)
    assert BACKEND.read_probe(Role.CLIENT, done.returncode, done.stdout) == Tool("2.1.0")
    with pytest.raises(ValueError, match="ended with 1"):
        BACKEND.read_probe(Role.CLIENT, 1, "no module")


def test_the_plugin_is_imported_without_its_backend_until_that_is_asked_for():
    program = "import sys, benchctl_simpleperf; assert 'pydantic' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


# --- what the lines become ------------------------------------------------------------------

INTERVAL = {
    "event": "interval", "direction": "receive", "stream": 1, "id": "10.0.0.1:1", "start_s": 0.0,
    "end_s": 0.5, "omitted": False, "throughput_bps": 1e6, "retransmits": 2, "busy_s": 0.25,
}  # fmt: skip
END = {
    "event": "end",
    "throughput_bps": 3e6,
    "directions": {
        "send": {
            "throughput_bps": 1e6, "end_s": 1.0, "effective": {"window_bytes": 4096},
            "packet_gap_s": {"min": 1.0, "mean": 2.0, "p99": 3.0}, "streams": [{"stream": 0}],
        },
        "receive": {"throughput_bps": 2e6, "effective": {"window_bytes": 8192}},
    },
    "cpu": {
        "client": {"process_ratio": 0.5, "host_ratio": None},
        "server": {"process_ratio": 0.25, "host_ratio": 0.75},
    },
    "unavailable": {"client": {}, "server": {"udp_gro": "not here"}},
}  # fmt: skip
TRANSCRIPT = [
    {"event": "warning", "message": "late"},
    {"event": "start", "epoch_s": 1795224664.25, "protocol": "tcp"},
    INTERVAL,
    END,
]
LISTENING = {"event": "listening", "address": "127.0.0.1", "port": 8088}


def lines(*objects):
    return b"".join(json.dumps(each).encode() + b"\n" for each in objects)


def client_parser():
    return BACKEND.client(flow()).parser


def server_parser(**params):
    return BACKEND.server(flow(**params)).parser


def test_a_transcript_becomes_events():
    assert replay(client_parser(), lines(*TRANSCRIPT)) == [
        Warn("late"),
        Started(1795224664.25),
        Sample(
            0.0, 0.5, {"throughput_bps": 1e6, "retransmits": 2.0, "busy_s": 0.25}, 1,
            Direction.RECEIVE,
        ),
        Summary(
            {
                "throughput_bps": 1e6,
                "packet_gap_s": {"min": 1.0, "mean": 2.0},
                "cpu_client_ratio": 0.5,
                "cpu_server_ratio": 0.25,
                "cpu_server_host_ratio": 0.75,
            },
            Direction.SEND,
        ),
        Summary({"throughput_bps": 2e6}, Direction.RECEIVE),
        Effective(
            {
                "send": {"window_bytes": 4096},
                "receive": {"window_bytes": 8192},
                "unavailable": {"server: udp_gro": "not here"},
            }
        ),
    ]  # fmt: skip


def test_what_is_in_force_in_one_direction_is_told_without_its_name():
    one = {**END, "directions": {"send": END["directions"]["send"]}, "unavailable": {}}
    assert Effective({"window_bytes": 4096}) in replay(client_parser(), lines(one))


def test_an_error_of_the_tool_is_a_failure_of_its_kind():
    error = {"event": "error", "kind": "busy", "message": "full", "hint": "wait"}
    assert replay(client_parser(), lines(error), exit_code=1) == [
        Failure(FailureKind.BUSY, "full", "wait")
    ]


def test_every_kind_of_problem_is_a_kind_of_failure():
    assert set(Problem.KINDS) == {str(kind) for kind in FailureKind}


@pytest.mark.parametrize(("code", "words"), [(-9, "signal 9"), (1, "ended with 1"), (0, "with 0")])
def test_an_end_without_a_result_is_a_failure_with_the_last_words(code, words):
    told = replay(client_parser(), lines(INTERVAL), b"Traceback\nlast words\n", code)
    assert isinstance(told[0], Sample)
    assert told[1].kind is FailureKind.TOOL
    assert words in told[1].message
    assert "last words" in told[1].message


def test_an_interrupted_client_that_told_its_result_is_no_failure():
    told = replay(client_parser(), lines(*TRANSCRIPT), exit_code=130)
    assert not any(isinstance(event, Failure) for event in told)


def test_a_server_is_ready_and_leaves_the_figures_to_the_client():
    assert replay(server_parser(), lines(LISTENING, INTERVAL, END)) == [Ready()]


def test_a_server_of_plain_streams_tells_what_arrived_when():
    told = replay(server_parser(plain=True), lines(LISTENING, INTERVAL, END))
    assert [type(event) for event in told] == [Ready, Sample]


def test_a_server_that_cannot_listen_is_a_failure():
    error = {"event": "error", "kind": "busy", "message": "taken"}
    assert replay(server_parser(), lines(error), exit_code=1) == [
        Failure(FailureKind.BUSY, "taken", "")
    ]


def test_a_server_that_ends_before_it_is_ready_is_a_failure():
    [failure] = replay(server_parser(), b"", b"ImportError: socket\n", 1)
    assert "ImportError" in failure.message


@pytest.mark.parametrize(
    "line",
    [
        b"Address already in use",
        b"[]",
        b"{",
        b"[" * 100_000,
        b'{"event": "news"}',
        b'{"event": ["end"]}',
        b'{"event": "start", "epoch_s": NaN}',
        b'{"event": "end", "directions": {"send": {"effective": {"window_bytes": 1e999}}}}',
        b'{"event": "start", "epoch_s": "soon"}',
        b'{"event": "start", "epoch_s": 1' + b"0" * 400 + b"}",
        json.dumps({**INTERVAL, "stream": -1}).encode(),
        json.dumps({**INTERVAL, "stream": True}).encode(),
        json.dumps({**INTERVAL, "start_s": 1.0}).encode(),
        json.dumps({**INTERVAL, "direction": "both"}).encode(),
        json.dumps({**INTERVAL, "throughput_bps": None}).encode(),
        json.dumps({**END, "directions": []}).encode(),
        json.dumps({**END, "directions": {"up": {}}}).encode(),
        json.dumps({**END, "directions": {"send": 3}}).encode(),
        json.dumps({**END, "cpu": {"client": {"process_ratio": "all"}}}).encode(),
        b'{"event": "error", "kind": "bad luck", "message": ""}',
    ],
)
def test_a_line_that_the_tool_does_not_print_is_a_parser_error(line):
    with pytest.raises(ParserError):
        replay(client_parser(), line + b"\n")


TRANSCRIPTS = {
    **kept("simpleperf"),
    "both": said((Channel.STDOUT, lines(*TRANSCRIPT)), direction=Direction.BOTH),
    "died": said((Channel.STDOUT, lines(INTERVAL)), (Channel.STDERR, b"Traceback\n"), exit_code=1),
    "server": said((Channel.STDOUT, lines(LISTENING, INTERVAL, END)), role=Role.SERVER),
    "plain server": said(
        (Channel.STDOUT, lines(LISTENING, INTERVAL, END)), role=Role.SERVER, plain=True
    ),
}


class TestSimpleperf(BundledContract):
    backend = BACKEND
    transcripts = TRANSCRIPTS


# --- for real -------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", [Direction.SEND, Direction.RECEIVE, Direction.BOTH])
@pytest.mark.parametrize("protocol", ["tcp", "udp"])
def test_the_commands_measure_and_their_lines_are_understood(direction, protocol, port):
    the_flow = flow(
        direction, port=port, protocol=protocol, duration="300ms", interval="100ms",
        omit="100ms", rate="10Mbit",
    )  # fmt: skip
    server, client = BACKEND.server(the_flow), BACKEND.client(the_flow)
    with subprocess.Popen(server.argv, stdout=subprocess.PIPE) as peer:
        assert server.parser.feed(peer.stdout.readline()) == [Ready()]
        begun = time.time()
        done = subprocess.run(client.argv, capture_output=True, timeout=DEADLINE_S, check=False)
        ended = time.time()
        events = replay(client.parser, done.stdout, done.stderr, done.returncode)
        assert peer.wait(DEADLINE_S) == 0
        told = server.parser.feed(peer.stdout.read())
    assert not [event for event in events if isinstance(event, Failure)]
    assert isinstance(events[0], Started)
    assert [type(event) for event in told] == [Started] * (direction is not Direction.SEND)
    if direction is Direction.RECEIVE:
        # Second 0 of the sender, after what is omitted; then the receiver's, as soon as it was run.
        assert begun + 0.1 <= told[0].epoch_s <= events[0].epoch_s + 1e-3
        assert events[0].epoch_s <= ended
        assert told[0].epoch_s <= ended - 0.3
    directions = {Direction.SEND, Direction.RECEIVE} if direction is Direction.BOTH else {direction}
    samples = [event for event in events if isinstance(event, Sample)]
    assert {sample.direction for sample in samples} == directions
    assert samples[0].omitted
    for summary in (event for event in events if isinstance(event, Summary)):
        assert summary.metrics["throughput_bps"] > 0
        declared = METRICS.keys() | {metric.name for metric in OWN_METRICS}
        assert summary.metrics.keys() <= declared
