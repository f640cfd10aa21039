"""benchctl packets, as its users run it."""

import gzip
import json
import re

import pytest
from cli.conftest import Benchctl
from packets.slow import slow
from packets.written import ethernet, ipv4, pcap, tcp


@pytest.fixture
def benchctl(tmp_path, fork_server):
    (tmp_path / "slow.pcap").write_bytes(slow())
    return Benchctl(tmp_path, server=fork_server)


def test_the_text_says_what_each_sender_waited_for(benchctl, golden):
    done = benchctl("packets", "slow.pcap", "--no-keep")
    assert (done.returncode, done.stderr) == (0, "")
    golden("packets/slow.txt", done.stdout)


def test_the_json_has_the_trace_its_connections_and_other_traffic(benchctl):
    done = benchctl("packets", "--json", "slow.pcap")
    entries = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["kind"] for one in entries] == [
        "trace", "connection", "connection", "exchange", "exchange", "run",
    ]  # fmt: skip
    trace, download, refused, asked, answered, _ = entries
    assert (trace["connections"], trace["faults"], trace["format"]) == (2, [], "pcap")
    assert download["requests"] == ["GET /big.iso HTTP/1.1"]
    assert (download["opened_by"], download["ending"]) == ("10.0.0.1:50112", "closed")
    assert (refused["ending"], refused["reset_by"]) == ("refused", "10.0.0.2:81")
    assert (asked["protocol"], asked["bytes"], answered["from"]) == ("UDP", 47, "10.0.0.2:53")
    way = download["directions"][1]
    assert way["retransmissions"] == {
        "count": 2, "bytes": 2920, "fast": 1, "timeout": 1, "probe": 0, "other": 0, "spurious": 0,
    }  # fmt: skip
    assert way["initial_window_segments"] == 10
    assert sum(one["total_s"] for one in way["waits"].values()) == pytest.approx(way["waiting_s"])
    assert way["waits"]["timeout"]["total_s"] == pytest.approx(0.25)
    # From the segment that filled the window until it opened.
    assert way["waits"]["window"]["total_s"] == pytest.approx(1.1, abs=2e-4)
    (shut,) = download["zero_windows"]
    assert (shut["closed_by"], shut["acks"], shut["probes"]) == ("10.0.0.1:50112", 3, 2)
    assert shut["duration_s"] == pytest.approx(1.05)


def test_one_connection_is_shown_by_its_number(benchctl):
    done = benchctl("packets", "slow.pcap", "--connection", "2")
    assert "10.0.0.1:50113 → 10.0.0.2:81, opened by 10.0.0.1:50113" in done.stdout
    assert ":50112" not in done.stdout
    wrong = benchctl("packets", "slow.pcap", "--connection", "3")
    assert (wrong.returncode, wrong.stderr.splitlines()[0]) == (
        2, "benchctl: --connection 3: the connections are 1 to 2",
    )  # fmt: skip


def test_a_file_that_is_cut_is_used_up_to_there_and_the_place_is_said(benchctl, tmp_path):
    (tmp_path / "cut.pcap.gz").write_bytes(gzip.compress(slow()[:-9]))
    done = benchctl("packets", "cut.pcap.gz")
    assert done.returncode == 0
    assert re.fullmatch(
        r"benchctl: cut.pcap.gz: byte [\d,]+ unpacked: the file is cut: .*\n", done.stderr
    )
    assert "2 TCP connections" in done.stdout


def test_of_many_connections_the_largest_are_listed(benchctl, tmp_path):
    packets = [
        (n * 1000, ethernet(ipv4(tcp(seq=1, size=n, ports=(n + 1, 80))))) for n in range(2000)
    ]
    (tmp_path / "many.pcap").write_bytes(pcap(packets))
    lines = benchctl("packets", "many.pcap").stdout.splitlines()
    assert "and 1,950 smaller ones: --json has all" in lines
    assert sum("→" in line and "began before the trace" in line for line in lines) == 5
    assert "of 2,000 of 2,000 connections, the trace has one direction only" in lines
    assert lines[5].split()[1] == "10.0.0.1:2000"


def test_a_file_that_is_no_capture_is_one_line(benchctl, tmp_path):
    (tmp_path / "notes.txt").write_text("hello, world")
    done = benchctl("packets", "notes.txt")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("benchctl: notes.txt: this is neither pcap nor pcapng")


@pytest.fixture
def both_ends(tmp_path):
    """Write a transfer as both ends have it; the second of three segments is lost once."""
    near, far = [], []
    for n, (at_s, seq, lost) in enumerate([(1, 0, 0), (2, 1000, 1), (3, 2000, 0), (4, 1000, 0)]):
        frame = ethernet(ipv4(tcp(0, 1 + seq, 1, size=1000), ident=n + 1))
        near.append((at_s * 10**9, frame))
        if not lost:
            far.append((at_s * 10**9 + 5 * 10**9, frame))
    (tmp_path / "near.pcap").write_bytes(pcap(near))
    (tmp_path / "far.pcap").write_bytes(pcap(far))


def test_two_traces_of_a_connection_say_what_left_one_and_never_came_to_the_other(
    benchctl, both_ends
):
    done = benchctl("packets", "near.pcap", "far.pcap")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"lost +1 +-", done.stdout)
    assert re.search(r"→ +1\.000 s +1,000 +1000 B", done.stdout)
    assert "the offset of the two clocks" in done.stdout
    entries = [
        json.loads(line)
        for line in benchctl("packets", "--json", "near.pcap", "far.pcap").stdout.splitlines()
    ]
    assert [one["kind"] for one in entries] == ["trace", "trace", "pair"]
    there = entries[2]["directions"][0]
    assert (there["left"], there["came"], there["lost"]) == (4, 3, 1)
    assert there["owd_s"]["min"] == pytest.approx(5.0)
    assert entries[2]["one_clock"] is False


def test_two_traces_without_a_connection_in_common_are_refused(benchctl, both_ends):
    done = benchctl("packets", "near.pcap", "slow.pcap")
    assert done.returncode == 2
    assert "no connection in common" in done.stderr
