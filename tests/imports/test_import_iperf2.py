"""``benchctl import`` of what an iperf 2 client printed."""

import pytest
from imports.reports import SAMPLES, only

TEXTS = SAMPLES / "iperf2"


@pytest.fixture
def store(tmp_path):
    return tmp_path / "runs.sqlite"


def flow_of(store, path):
    (trial,) = only(store, path)["trials"]
    (flow,) = trial["flows"]
    assert trial["status"] == "ok"
    return flow


def test_a_plain_report_is_the_senders_count(store):
    flow = flow_of(store, TEXTS / "plain.txt")
    assert flow["metrics"]["sent_bps"] == 20e6
    assert "throughput_bps" not in flow["metrics"]
    assert (flow["direction"], flow["to"]) == ("send", "127.0.0.1")


def test_streams_and_enhanced_columns_are_read(store):
    flow = flow_of(store, TEXTS / "enhanced_P2.txt")
    assert flow["requested"]["streams"] == 2
    assert flow["metrics"]["retransmits"] == 0
    assert flow["metrics"]["tcp_rtt_s"]["mean"] > 0


def test_the_way_back_is_received(store):
    flow = flow_of(store, TEXTS / "reverse.txt")
    assert flow["direction"] == "receive"
    assert flow["metrics"]["throughput_bps"] == 20e6


def test_datagrams_have_their_rate_and_length_and_the_servers_report(store):
    flow = flow_of(store, TEXTS / "udp.txt")
    assert flow["requested"] == {"protocol": "udp", "streams": 1, "length": 1470.0, "rate": 2e6}
    assert flow["metrics"]["packets_received"] == 174
    assert flow["metrics"]["loss_ratio"] == 0
    assert "packets_sent" not in flow["metrics"]  # 250 KBytes are not that exact


def test_a_file_that_ends_too_early_is_a_failed_trial(store, tmp_path):
    path = tmp_path / "cut.txt"
    lines = (TEXTS / "plain.txt").read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-1]))
    (trial,) = only(store, path)["trials"]
    assert trial["status"] == "failed"
