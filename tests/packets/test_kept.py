"""A packet trace that is kept as a run, by the commands that show runs."""

import json
import os
import re

import pytest
from cli.conftest import Benchctl
from packets.slow import slow
from packets.written import ethernet, ipv4, pcap, tcp

DOWNLOAD = "10.0.0.2:80-10.0.0.1"


@pytest.fixture
def benchctl(tmp_path, fork_server):
    (tmp_path / "slow.pcap").write_bytes(slow())
    return Benchctl(tmp_path, server=fork_server)


def kept(done):
    """Return the name of the run, which is printed last."""
    assert (done.returncode, done.stderr) == (0, "")
    return re.fullmatch(r"kept as (\S+)", done.stdout.splitlines()[-1])[1]


def exported(benchctl, run="last"):
    return json.loads(benchctl("export", run, "--format", "json").stdout)


def test_a_trace_is_kept_with_what_was_found_and_its_series(benchctl, tmp_path):
    name = kept(benchctl("packets", "slow.pcap"))
    entries = map(json.loads, benchctl("packets", "slow.pcap", "--json").stdout.splitlines())
    download = next(one for one in entries if one["kind"] == "connection")
    run = exported(benchctl, name)
    assert (run["run"]["profile"], run["run"]["origin"]) == ("slow", "packets")
    (trial,) = run["trials"]
    flows = {flow["name"]: flow for flow in trial["flows"]}
    assert set(flows) == {DOWNLOAD, "10.0.0.1-10.0.0.2:80"}
    flow = flows[DOWNLOAD]
    way = download["directions"][1]
    assert (flow["from"], flow["to"]) == ("10.0.0.2:80", "10.0.0.1:50112")
    assert flow["metrics"]["throughput_bps"] == way["throughput_bps"]
    assert flow["metrics"]["retransmits"] == way["retransmissions"]["count"]
    del way["rtt_s"]["samples"]
    assert flow["metrics"]["rtt_s"] == way["rtt_s"]
    assert flow["metrics"]["flight_bytes"]["max"] == way["flight_max_bytes"]
    (packets,) = flow["captures"]
    assert packets["findings"] == [download | {"directions": packets["findings"][0]["directions"]}]
    assert packets["file"] == str(tmp_path / "slow.pcap")
    assert packets["size_bytes"] == len(slow())


def test_a_trace_is_kept_once_and_again_when_it_has_changed(benchctl, tmp_path):
    first = kept(benchctl("packets", "slow.pcap"))
    assert kept(benchctl("packets", "slow.pcap", "--connection", "1")) == first
    (tmp_path / "link.pcap").symlink_to("slow.pcap")
    assert kept(benchctl("packets", "link.pcap")) == first
    other = kept(benchctl("packets", "slow.pcap", "--interval", "100ms"))
    assert other != first
    os.utime(tmp_path / "slow.pcap", (1, 1))
    assert kept(benchctl("packets", "slow.pcap")) not in {first, other}


def test_a_replay_does_not_say_that_a_trace_is_running(benchctl, tmp_path):
    kept(benchctl("packets", "slow.pcap"))
    at = ("--replay", "last", "--at", "1s", "--screenshot", "screen.txt")
    assert benchctl("tui", *at).returncode == 0
    screen = (tmp_path / "screen.txt").read_text()
    assert "✓ ok  ▶ x1 1.0/" in screen.splitlines()[0]
    assert "running" not in screen


def test_print_only_leaves_no_store(benchctl, tmp_path):
    done = benchctl("packets", "slow.pcap", "--no-keep")
    assert "kept" not in done.stdout
    assert not benchctl.store.exists()
    both = benchctl("packets", "slow.pcap", "--no-keep", "--interval", "1s")
    assert both.returncode == 2


def test_json_has_the_run_last(benchctl):
    *_, last = benchctl("packets", "slow.pcap", "--json").stdout.splitlines()
    assert json.loads(last) == {"kind": "run", "name": exported(benchctl)["run"]["id"]}


@pytest.mark.parametrize("wrong", ["0s", "5", "-1s", "fast"])
def test_an_interval_that_is_none_is_one_line(benchctl, wrong):
    done = benchctl("packets", "slow.pcap", f"--interval={wrong}")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("benchctl: --interval")


def test_a_trace_without_data_keeps_nothing_and_says_so(benchctl, tmp_path):
    (tmp_path / "none.pcap").write_bytes(pcap([]))
    done = benchctl("packets", "none.pcap")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "no connection with data: nothing is kept"
    assert not benchctl.store.exists()
    *_, last = benchctl("packets", "none.pcap", "--json").stdout.splitlines()
    assert json.loads(last) == {"kind": "run", "name": None}


def test_of_many_connections_the_largest_are_kept_and_those_that_are_named(benchctl, tmp_path):
    packets = [
        (n * 1000, ethernet(ipv4(tcp(seq=1, size=n, ports=(n + 1, 80))))) for n in range(2000)
    ]
    (tmp_path / "many.pcap").write_bytes(pcap(packets))
    last = benchctl("packets", "many.pcap").stdout.splitlines()[-1]
    assert last.startswith("kept, without 1,949 smaller connections as ")
    (trial,) = exported(benchctl)["trials"]
    assert len(trial["flows"]) == 50
    numbers = {flow["captures"][0]["findings"][0]["number"] for flow in trial["flows"]}
    assert numbers == {*range(1951, 2001)}
    assert trial["flows"][0]["captures"][0]["findings"][0]["number"] == 2000
    benchctl("packets", "many.pcap", "--connection", "7")
    (trial,) = exported(benchctl)["trials"]
    assert len(trial["flows"]) == 51


def test_connections_that_somebody_saw_at_the_same_time_are_not_said_to_share(benchctl, tmp_path):
    packets = [
        (n * 10**8, ethernet(ipv4(tcp(seq=1 + n // 2 * size, size=size, ports=(port, 80)))))
        for n in range(40)
        for port, size in [[(1, 1400), (2, 100)][n % 2]]
    ]
    (tmp_path / "two.pcap").write_bytes(pcap(packets))
    kept(benchctl("packets", "two.pcap"))
    (trial,) = exported(benchctl)["trials"]
    assert (len(trial["flows"]), trial["fairness_jain"]) == (2, None)


def test_a_flow_is_limited_by_what_its_sender_waited_for_the_longest(benchctl):
    kept(benchctl("packets", "slow.pcap"))
    (flow,) = [one for one in exported(benchctl)["trials"][0]["flows"] if one["name"] == DOWNLOAD]
    (entry,) = flow["captures"][0]["findings"]
    waits = entry["directions"][1]["waits"]
    assert flow["limit"]["waits_s"] == {cause: wait["total_s"] for cause, wait in waits.items()}
    assert flow["limit"]["by"] == "receive window"
    (line,) = [
        one for one in benchctl("show").stdout.splitlines() if "send: receive window:" in one
    ]
    said = "the sender waited 1.10 s for the receiver's window, 250 ms for retransmission timeouts"
    assert said in line
    assert said in benchctl("show", "--trials").stdout
    assert said in benchctl("report", "--format", "md").stdout


def test_pictures_of_packets_are_drawn_from_the_trace_where_it_still_is(benchctl, tmp_path):
    kept(benchctl("packets", "slow.pcap"))
    drawing = ("plot", "--kind", "time-sequence", "--terminal", "--only", f"flow={DOWNLOAD}")
    done = benchctl(*drawing)
    assert (done.returncode, "from=10.0.0.2:80" in done.stdout) == (0, True)
    (tmp_path / "slow.pcap").write_bytes(slow() + b"more")
    changed = benchctl(*drawing)
    assert (changed.returncode, changed.stdout) == (2, "")
    assert "slow.pcap: it has changed since the run was kept" in changed.stderr
    (tmp_path / "slow.pcap").unlink()
    gone = benchctl(*drawing)
    assert (gone.returncode, len(gone.stderr.splitlines())) == (2, 1)
    assert "slow.pcap: No such file or directory" in gone.stderr
    assert benchctl("plot", "--terminal", "--y", "flight_bytes").returncode == 0


@pytest.mark.parametrize(
    "command",
    [
        ("show", "--events"),
        ("compare", "last", "--against", "baseline"),
        ("runs", "tag", "last", "seen"),
        ("export", "last", "--format", "csv"),
        ("export", "last", "--format", "jsonl"),
        ("trend", "slow"),
    ],
)
def test_commands_of_runs_take_a_kept_trace(benchctl, command):
    kept(benchctl("packets", "slow.pcap"))
    benchctl("baseline", "set", "last")
    kept(benchctl("packets", "slow.pcap", "--interval", "5ms"))
    done = benchctl(*command)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_run_of_a_trace_that_is_deleted_leaves_the_trace(benchctl, tmp_path):
    name = kept(benchctl("packets", "slow.pcap"))
    assert benchctl("runs", "delete", name, "--yes").returncode == 0
    assert (tmp_path / "slow.pcap").read_bytes() == slow()
