"""simpleperf as a program: its flags, what it prints, its exit codes, and the one-file form."""

import fcntl
import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from simpleperf.simpleperf_harness import COMMAND, client_program, server_program
from waiting import DEADLINE_S

from benchctl_simpleperf.simpleperf import __version__
from benchctl_simpleperf.simpleperf.measuring.pacing import shares_core
from benchctl_simpleperf.simpleperf.program.flags import parse_flags, settings_of
from benchctl_simpleperf.simpleperf.program.output import EventsOutput, JsonOutput, TextOutput
from benchctl_standalone.errors import Problem


def run(*flags, **options):
    return subprocess.run(
        [*COMMAND, *flags],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
        **options,
    )


# --- flags ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ([], "one of the arguments"),
        (["-s", "-c"], "not allowed with"),
        (["-c", "-t", "1", "-n", "1MB"], "exclude each other"),
        (["-c", "-k", "1", "-n", "1MB"], "exclude each other"),
        (["-c", "-R", "--both"], "exclude each other"),
        (["-c", "--json", "--events"], "exclude each other"),
        (["-c", "-i", "0.001"], "at least 0.01"),
        (["-c", "-t", "0"], "less than"),
        (["-c", "-t", "soon"], "not a time"),
        (["-c", "-n", "5XB"], "unknown unit"),
        (["-c", "-p", "65536"], "from 0 to 65535"),
        (["-c", "-P", "129"], "from 1 to 128"),
        (["-c", "-u", "-l", "8"], "16 to 65507"),
        (["-c", "-u", "-l", "65508"], "16 to 65507"),
        (["-c", "--dscp", "64"], "from 0 to 63"),
        (["-c", "-f", "GB"], "invalid choice"),
        (["-c", "--plain", "-u"], "the plain protocol has no -u"),
        (["-c", "--plain", "-O", "1"], "the plain protocol has no -O"),
        (["-c", "--key", "sesame"], "unrecognized arguments"),
    ],
)
def test_a_wrong_command_line_is_explained_and_ends_with_2(flags, words):
    done = run(*flags)
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stdout == ""


def test_the_version_is_one_line_on_any_terminal():
    done = run("--version", env={"COLUMNS": "1"})
    assert done.stdout.split(" ") == ["simpleperf", f"{__version__}\n"]


def test_the_old_flags_mean_what_they_did():
    flags = parse_flags(["-c", "-I10.0.0.1", "-p8088", "-t25", "-fMB", "-i5", "-P2", "--plain"])
    settings = settings_of(flags)
    assert (flags.serverip, flags.port, flags.format) == ("10.0.0.1", 8088, "MB")
    assert (settings.duration_s, settings.interval_s, settings.streams) == (25, 5, 2)
    assert settings_of(parse_flags(["-c", "-n", "10MB"])).total_bytes == 10_000_000


def test_what_is_not_asked_has_its_default():
    tcp, udp = settings_of(parse_flags(["-c"])), settings_of(parse_flags(["-c", "-u"]))
    assert (tcp.duration_s, tcp.rate_bps, tcp.length_bytes) == (10.0, None, 131_072)
    assert (udp.rate_bps, udp.length_bytes) == (1e6, 1448)
    assert settings_of(parse_flags(["-c", "-u", "-r", "unlimited"])).rate_bps is None


def test_blocks_are_bytes_of_that_length():
    settings = settings_of(parse_flags(["-c", "-k", "7", "-l", "1KB"]))
    assert (settings.total_bytes, settings.duration_s) == (7000, None)


def test_every_flag_is_explained():
    told = run("--help").stdout
    for flag in (
        "-s",
        "-c",
        "-b",
        "-p",
        "-f",
        "-I",
        "-t",
        "-i",
        "-n",
        "-P",
        "--zero-copy",
        "--self",
    ):
        assert re.search(rf"^ +(-\w, )?{flag}\b", told, re.M) or f" {flag}," in told, flag


# --- output ---------------------------------------------------------------------------------

GOLDEN = Path(__file__).with_name("golden")
TCP_STREAM = {
    "direction": "send", "stream": 0, "id": "10.0.0.1:40000", "start_s": 0.0, "end_s": 1.0,
    "omitted": False, "bytes_sent": 118_000_000, "sent_bps": 944e6, "bytes_received": 117_500_000,
    "throughput_bps": 940e6, "retransmits": 3, "cwnd_bytes": 306_000, "tcp_rtt_s": 0.0205,
}  # fmt: skip
UDP_STREAM = {
    "direction": "receive", "stream": 0, "id": "10.0.0.1:40001", "start_s": 0.0, "end_s": 2.0,
    "omitted": False, "bytes_sent": 25_000_000, "sent_bps": 100e6, "bytes_received": 24_750_000,
    "throughput_bps": 99e6, "packets_sent": 1000, "packets_received": 990, "packets_lost": 10,
    "jitter_rfc3550_s": 12e-6,
}  # fmt: skip


def result_of(stream):
    return {
        "throughput_bps": stream["throughput_bps"],
        "directions": {stream["direction"]: {**stream, "streams": [stream]}},
        "cpu": {"client": {"process_ratio": 0.25, "host_ratio": 0.5}, "server": {}},
        "unavailable": {"client": {}, "server": {"udp_gro": "this system does not have it"}},
    }


@pytest.mark.parametrize(("name", "stream"), [("tcp", TCP_STREAM), ("udp", UDP_STREAM)])
def test_people_get_a_table(capsys, name, stream):
    output = TextOutput()
    output.interval(stream)
    output.finished(result_of(stream))
    assert capsys.readouterr().out == (GOLDEN / f"{name}.txt").read_text()


@pytest.mark.parametrize(
    ("unit", "transfer"), [("B", "117500000 B"), ("KB", "117500.00 KB"), ("MB", "117.50 MB")]
)
def test_the_format_flag_fixes_the_unit_as_before(capsys, unit, transfer):
    TextOutput(unit).interval(TCP_STREAM)
    row = capsys.readouterr().out.splitlines()[1]
    assert f" {transfer} " in row
    assert " 940.00 Mbps " in row


def test_what_the_other_end_says_steers_no_terminal(capsys):
    evil = "a\x1b]0;b\x07\r\n\u202ec\x9b2J \u200d\u00e9"
    shown = "a\\x1b]0;b\\x07\\r\\n\\u202ec\\x9b2J \u200d\u00e9"
    output = TextOutput()
    output.warning(evil)
    output.failed(Problem("refused", evil, evil))
    output.listening(evil, 1)
    output.finished({**result_of(TCP_STREAM), "unavailable": {"server": {"cpu": evil}}})
    told = capsys.readouterr()
    assert told.err.splitlines() == [
        f"simpleperf: warning: {shown}", f"simpleperf: {shown}", f"simpleperf: {shown}",
    ]  # fmt: skip
    assert told.out.splitlines()[0] == f"simpleperf server listening on {shown} port 1"
    assert told.out.splitlines()[-1] == f"server without cpu: {shown}"


def test_a_terminal_that_lacks_a_character_gets_its_code(monkeypatch):
    file = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stderr", file)
    TextOutput().warning("\u00e9")
    monkeypatch.setattr(sys, "stderr", None)  # closed by the shell: it is not stdout's
    TextOutput().warning("nobody hears")
    assert file.buffer.getvalue() == b"simpleperf: warning: \\xe9\n"


def test_json_is_one_object_with_the_result_on_top(capsys):
    output = JsonOutput()
    output.started({"epoch_s": 5.0})
    output.interval(UDP_STREAM)
    output.warning("take care")
    output.finished(result_of(UDP_STREAM))
    told = json.loads(capsys.readouterr().out)
    assert told["throughput_bps"] == 99e6
    assert told["intervals"] == [UDP_STREAM]
    assert (told["warnings"], told["error"], told["epoch_s"]) == (["take care"], None, 5.0)


def test_json_of_a_server_is_a_line_for_each_measurement_with_its_own_intervals(capsys):
    output = JsonOutput(server=True)
    output.listening("127.0.0.1", 8088)
    mine, other = {**TCP_STREAM, "id": "mine"}, {**TCP_STREAM, "id": "other"}
    for figures in (mine, other, mine):
        output.interval(figures)
    output.unfinished(Problem("peer", "gone"), ["other"])
    output.interval(other)
    output.finished(result_of(mine))
    told = capsys.readouterr()
    assert "port 8088" in told.err
    failed, done = map(json.loads, told.out.splitlines())
    assert (failed["error"]["message"], failed["intervals"]) == ("gone", [other])
    assert (done["error"], done["intervals"]) == (None, [mine, mine])


def test_events_are_lines_in_the_order_of_what_happened(capsys):
    output = EventsOutput()
    output.listening("127.0.0.1", 8088)
    output.started({"epoch_s": 5.0})
    output.interval(TCP_STREAM)
    output.finished(result_of(TCP_STREAM))
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["event"] for line in told] == ["listening", "start", "interval", "end"]


def interrupt(process, number):
    """Send a signal once the program has told an interval; returns all it said."""
    told = ""
    for line in process.stdout:
        told += line
        if "interval" in line:
            break
    process.send_signal(number)
    rest, errors = process.communicate(timeout=DEADLINE_S)
    assert "Traceback" not in errors
    return told + rest


def start_client(port, *flags):
    return subprocess.Popen(
        [*COMMAND, "-c", "-p", str(port), *flags],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("plain", [(), ("--plain",)])
def test_an_interrupted_client_tells_what_it_has_and_ends_with_130(number, plain):
    with server_program() as (_, port):
        client = start_client(port, "-t", "60", "-i", "0.05", "--events", *plain)
        told = [json.loads(line) for line in interrupt(client, number).splitlines()]
    assert client.returncode == 130
    assert told[0]["event"] == "start"
    assert told[-1]["event"] == "end"
    assert told[-1]["throughput_bps"] > 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_server_that_is_asked_to_end_ends_with_0(number):
    with server_program() as (server, port):
        client = start_client(port, "-t", "60", "-i", "0.05", "--events")
        client.stdout.readline()
        server.send_signal(number)
        assert server.wait(DEADLINE_S) == 0
        told, _ = client.communicate(timeout=DEADLINE_S)
    assert client.returncode == 1
    assert json.loads(told.splitlines()[-1])["kind"] == "peer"


def test_a_measurement_that_fails_ends_with_1_and_says_why(port):
    done = client_program(port, "-t", "1")
    assert done.returncode == 1
    assert done.stdout == ""
    assert "Connection refused" in done.stderr


def test_a_failure_is_an_object_where_objects_are_wanted(port):
    whole = json.loads(client_program(port, "--json").stdout)
    assert (whole["throughput_bps"], whole["error"]["kind"]) == (None, "unreachable")
    [event] = map(json.loads, client_program(port, "--events").stdout.splitlines())
    assert (event["event"], event["kind"]) == ("error", "unreachable")


def test_a_port_that_is_taken_is_told():
    with server_program() as (_, port):
        done = run("-s", "-p", str(port))
    assert done.returncode == 1
    assert "Address already in use" in done.stderr


def test_a_one_off_server_ends_after_one_measurement_and_not_after_a_stranger():
    with server_program("--one-off") as (server, port):
        for sent in (b"", b"\0simpleperf control 1\n"):
            with socket.create_connection(("127.0.0.1", port)) as stranger:
                stranger.sendall(sent)
        assert client_program(port, "--plain", "-n", "1MB", "-P", "3").returncode == 0
        assert server.wait(DEADLINE_S) == 0


def test_a_reader_that_went_away_ends_the_program_quietly():
    with server_program() as (_, port):
        client = start_client(port, "-t", "60", "-i", "0.05", "--events")
        client.stdout.readline()
        client.stdout.close()
        assert client.wait(DEADLINE_S) == 1
        assert client.stderr.read() == ""
        client.stderr.close()


def test_a_server_serves_on_when_nobody_reads_its_output():
    rounds = waiting = 0
    with server_program("-i", "0.01") as (server, port):
        while not rounds or waiting <= 60_000:  # of the 65,536 that a pipe holds
            before = waiting
            done = client_program(port, "-P", "32", "-t", "0.2", "-i", "0.01", "-r", "1M")
            assert done.returncode == 0
            rounds += 1
            found = fcntl.ioctl(server.stdout, termios.FIONREAD, bytes(4))
            waiting = int.from_bytes(found, sys.byteorder)
            assert waiting > before
        assert client_program(port, "-t", "0.1").returncode == 0
        rounds += 1
        # What waited comes when somebody reads, whole and in order.
        events = [json.loads(server.stdout.readline())["event"]]
        while events.count("end") < rounds:
            events.append(json.loads(server.stdout.readline())["event"])


def test_a_server_serves_on_when_the_reader_of_its_output_went_away():
    with server_program("-i", "0.01") as (server, port):
        server.stdout.close()
        for _ in range(2):
            assert client_program(port, "-t", "0.1", "-i", "0.05").returncode == 0


@pytest.fixture
def one_core():
    """Let the programs that a test starts share one core."""
    if not hasattr(os, "sched_setaffinity"):
        pytest.skip("needs sched_setaffinity")
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    yield
    os.sched_setaffinity(0, cores)


@pytest.mark.quiet
def test_a_udp_sender_without_a_rate_lets_its_receiver_run(one_core):
    losses = []
    with server_program("--max-rate", "unlimited") as (_, port):
        # Without that, a sixth and more is lost; with it, only to what else the core has to do.
        while not losses or (min(losses) >= 0.05 and len(losses) < 5):
            done = client_program(port, "-u", "-r", "0", "-t", "0.5", "--json")
            losses.append(json.loads(done.stdout)["directions"]["send"]["loss_ratio"])
    assert min(losses) < 0.05


def test_ends_share_a_core_only_if_they_are_one_host_with_one_core(one_core):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        with socket.create_connection(listener.getsockname()) as here:
            assert shares_core(here)
        with socket.create_connection(
            listener.getsockname(), source_address=("127.0.0.2", 0)
        ) as other:
            assert not shares_core(other)
        os.sched_setaffinity(0, range(os.cpu_count()))
        with socket.create_connection(listener.getsockname()) as here:
            assert shares_core(here) is (os.cpu_count() == 1)


def test_the_key_comes_from_the_environment_on_both_sides(tmp_path):
    keyed = {**os.environ, "SIMPLEPERF_KEY": "sesame"}
    with server_program(env=keyed) as (_, port):
        assert client_program(port, "-n", "1MB", env=keyed).returncode == 0
        done = client_program(port, "-n", "1MB")
        assert done.returncode == 1
        assert "--key-file" in done.stderr
