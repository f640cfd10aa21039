"""``quick``: a first look at one host, stored as a run whose profile can be written out."""

import json
import socket
import subprocess
import sys
from types import SimpleNamespace

import pytest

from benchctl.engine.checks import network
from benchctl.engine.prepare import quick_look
from benchctl.engine.prepare.quick_look import look_at
from benchctl.errors import MissingError
from benchctl.metrics import Direction
from benchctl.profile.quick import Quick

BOTH = (Direction.SEND, Direction.RECEIVE)


@pytest.fixture
def quick(benchctl):
    def quick(*args, duration="300ms"):
        options = ("--backend", "simpleperf", "--duration", duration, "-q", "--format", "json")
        return benchctl("quick", *args, *options)

    return quick


def figures(result):
    """Return the metrics of each flow by the trial's point and its name."""
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    return {
        (trial["point"]["measure"], flow["name"]): flow["metrics"]
        for trial in report["trials"]
        for flow in trial["flows"]
    }


@pytest.mark.tool("ping")
def test_both_ways_and_the_round_trip_idle_and_under_load_are_measured(benchctl, quick):
    found = figures(quick("local", "--save", "mine.toml", "--tag", "first", duration="1s"))
    assert list(found) == [
        ("send", "load"), ("send", "ping"), ("receive", "load"), ("receive", "ping"),
        ("udp", "load"),
    ]  # fmt: skip
    for way in ("send", "receive"):
        assert found[way, "load"].keys() >= {"throughput_bps", "responsiveness_rpm"}
        assert found[way, "ping"].keys() >= {"rtt_idle_s", "rtt_s"}
    assert {"loss_ratio", "jitter_rfc3550_s"} <= found["udp", "load"].keys()
    assert benchctl("runs", "--tag", "first", "--profile", "mine").stdout.count("\n") == 2
    assert benchctl("check", "mine.toml").returncode == 0
    planned = benchctl("plan", "mine.toml").stdout
    assert "measure  send, receive, udp" in planned


def test_a_server_that_somebody_runs_is_measured_without_pings(quick, port):
    server = subprocess.Popen(
        [sys.executable, "-m", "benchctl_simpleperf", "-s", "-p", str(port)],
        stdout=subprocess.PIPE,
    )
    try:
        server.stdout.readline()  # it listens
        found = figures(quick("127.0.0.1", "--port", str(port), "--no-ping", "--udp", "0"))
    finally:
        server.terminate()
        server.communicate()
    assert list(found) == [("send", "load"), ("receive", "load")]


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (["http://x"], "leave out the scheme"),
        (["local", "--udp", "10Mbps"], '"10Mbps"'),
        (["local", "--save", "p.toml"], "--save p.toml: the file exists"),
        (["local", "--save", "no/p.toml"], "--save no/p.toml: No such file or directory"),
    ],
)
def test_a_wrong_option_is_rejected_before_anything_is_measured(benchctl, args, why):
    benchctl.profile("")
    result = benchctl("quick", *args)
    assert result.returncode == 2
    assert why in result.stderr
    assert not benchctl.store.exists()


def test_a_tool_that_measures_no_throughput_is_rejected(benchctl):
    result = benchctl("quick", "local", "--backend", "ping")
    assert result.returncode == 2
    assert "does not measure throughput" in result.stderr


def test_only_a_host_elsewhere_or_a_port_needs_a_server_of_others():
    assert "[servers]" not in Quick("localhost", "iperf3", BOTH, 5.0).text
    assert "[servers]" in Quick("localhost", "iperf3", BOTH, 5.0, port=5201).text
    text = Quick("2001:db8::1", "iperf3", BOTH, 5.0, port=5201).text
    assert 'server = { host = "2001:db8::1", port = 5201 }' in text


def test_a_host_that_is_logged_in_to_needs_no_server_of_others():
    text = Quick("paris", "simpleperf", BOTH, 5.0, ssh=True).text
    assert '[hosts]\nserver = { ssh = "paris" }' in text
    assert "[servers]" not in text


def test_only_what_a_tool_accepts_is_asked_of_it():
    some = Quick("paris", "iperf3", BOTH, 5.0, accepts={"streams", "interval"}).text
    assert '"load.streams" = 4' in some
    assert "probe" not in some
    assert "streams" not in Quick("paris", "twamp", [Direction.BOTH], 5.0).text


@pytest.mark.parametrize(
    ("listens", "tool"), [({8088}, "simpleperf"), ({5201}, "iperf3"), ({8088, 5201}, "simpleperf")]
)
def test_which_server_answers_is_found_out_and_said(monkeypatch, listens, tool):
    said = {8088: "silent", 5201: "silent", **dict.fromkeys(listens, "")}
    monkeypatch.setattr(quick_look, "listening", lambda host, ports: {p: said[p] for p in ports})
    told = []
    assert look_at("192.0.2.1", note=told.append).backend == tool
    assert told[0].startswith(f"{tool} answers at 192.0.2.1 port ")


def test_if_none_answers_it_is_said_of_each_port_why(monkeypatch):
    said = {8088: "connection refused", 5201: "silent for 3 s"}
    monkeypatch.setattr(quick_look, "listening", lambda host, ports: {p: said[p] for p in ports})
    with pytest.raises(MissingError) as failed:
        look_at("192.0.2.1")
    assert failed.value.message == (
        "no server answers at 192.0.2.1: simpleperf port 8088 connection refused, iperf3 port 5201"
        " silent for 3 s"
    )
    assert "benchctl quick --ssh 192.0.2.1" in failed.value.hint


def test_where_this_user_may_not_ping_the_load_is_measured_without(monkeypatch):
    monkeypatch.setattr(quick_look, "may_ping", lambda: False)
    notes = []
    assert not look_at("local", note=notes.append).pings
    assert "this user may not send any" in notes[0]


@pytest.mark.parametrize(
    ("ping", "kernel", "may"), [(0, False, True), (1, True, True), (1, False, False)]
)
def test_whether_a_user_may_ping_is_tried(monkeypatch, tmp_path, ping, kernel, may):
    program = tmp_path / "ping"
    program.write_text(f"#!/bin/sh\nexit {ping}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")

    def open_socket(*_):
        if not kernel:
            raise PermissionError
        return SimpleNamespace(close=lambda: None)

    monkeypatch.setattr(network.socket, "socket", open_socket)
    assert network.may_ping() is may


def test_a_port_that_listens_is_told_from_one_that_refuses(port):
    with socket.create_server(("127.0.0.1", 0)) as server:
        open_one = server.getsockname()[1]
        found = network.listening("127.0.0.1", [open_one, port])
    assert found == {open_one: "", port: "connection refused"}


def test_every_command_of_a_first_look_is_logged_and_its_end_announced(benchctl, quick):
    notify = ("--notify", "echo $BENCHCTL_STATUS > said")
    done = quick("local", "--no-ping", "--udp", "0", "--log", "log.txt", *notify)
    assert done.returncode == 0, done.stderr
    assert " starts: " in (benchctl.directory / "log.txt").read_text()
    assert (benchctl.directory / "said").read_text() == "ok\n"


def test_a_server_that_never_answers_ends_it_after_the_first_trial(benchctl, port):
    words = ("--backend", "simpleperf", "--udp", "0", "--no-ping", "--format", "json")
    result = benchctl("quick", "127.0.0.1", "--port", port, *words)
    assert result.returncode == 1
    first, second = json.loads(result.stdout)["trials"]
    assert (first["status"], second["status"]) == ("failed", "skipped")
    assert [flow["attempts"] for flow in first["flows"]] == [1]
    why = "not measured: 127.0.0.1 refuses the connection: no server listens at that port"
    assert second["error"] == why


def test_a_name_that_is_not_known_is_said_before_anything_is_planned(benchctl):
    result = benchctl("quick", "no-such-host.invalid")
    assert (result.returncode, result.stdout) == (3, "")
    assert result.stderr.startswith("benchctl: the name no-such-host.invalid is not known here: ")
    assert not benchctl.store.exists()


@pytest.mark.parametrize(
    ("port", "tool"), [(8088, "simpleperf"), (5201, "iperf3"), (9000, "iperf3")]
)
def test_a_port_that_is_given_names_the_tool_whose_own_it_is(port, tool):
    assert look_at("192.0.2.1", port=port).backend == tool
