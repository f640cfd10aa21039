"""``benchctl import`` of what ping and owping printed."""

import time
from contextlib import closing

import pytest
from imports.reports import SAMPLES, imported, only

from benchctl.store.read import Reader


@pytest.fixture
def store(tmp_path):
    return tmp_path / "runs.sqlite"


def flow_of(store, path):
    (trial,) = only(store, path)["trials"]
    return trial, trial["flows"]


def samples_in(store):
    with closing(Reader(store)) as reader:
        return [*reader.samples_of_trial(1)]


def test_replies_with_times_are_samples(store):
    trial, (flow,) = flow_of(store, SAMPLES / "ping" / "v4_D.txt")
    assert trial["status"] == "ok"
    assert flow["metrics"]["rtt_s"]["min"] == pytest.approx(17e-6)
    assert flow["metrics"]["rtt_s"]["mean"] == pytest.approx(25e-6)
    assert flow["metrics"]["rtt_s"]["max"] == pytest.approx(39e-6)
    assert flow["metrics"]["loss_ratio"] == 0
    assert (flow["direction"], flow["to"]) == ("round-trip", "127.0.0.1")
    assert flow["requested"] == {"length": 56.0}
    assert len(samples_in(store)) == 20
    with closing(Reader(store)) as reader:
        (stored,) = reader.trials(1)
    assert stored.started_time == pytest.approx(1795218653.26, abs=0.2)


def test_a_quiet_ping_has_its_statistics_and_the_time_of_its_file(store, tmp_path):
    import os

    path = tmp_path / "q.txt"
    path.write_bytes((SAMPLES / "ping" / "v4_q.txt").read_bytes())
    os.utime(path, (1.7e9, 1.7e9))
    run = only(store, path)
    (flow,) = run["trials"][0]["flows"]
    assert flow["metrics"]["packets_received"] == flow["metrics"]["packets_sent"]
    assert {"min", "mean", "max"} <= flow["metrics"]["rtt_s"].keys()
    assert run["notes"] == [f"{path}: has no time; that of its last change stands for its end"]
    with closing(Reader(store)) as reader:
        assert reader.run(1).finished_time == 1.7e9


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("dest_host_unreachable_arp", "ping: "),
        ("sigTERM", "ping: the file ends before ping's statistics"),
    ],
)
def test_a_ping_without_a_result_is_a_failed_trial(store, name, error):
    trial, _ = flow_of(store, SAMPLES / "ping" / f"{name}.txt")
    assert trial["status"] == "failed"
    assert trial["error"].startswith(error)


def test_several_pings_in_one_file_are_repeats(store, tmp_path):
    path = tmp_path / "log.txt"
    path.write_text("$ ping\n" + 3 * (SAMPLES / "ping" / "v4_D.txt").read_text())
    run = only(store, path)
    assert [trial["repeat"] for trial in run["trials"]] == [1, 2, 3]


def test_more_probes_than_memory_should_hold_are_refused(store, tmp_path):
    path = tmp_path / "many.txt"
    path.write_text(
        "PING a (10.0.0.1) 56(84) bytes of data.\n\n--- a ping statistics ---\n"
        "999999999 packets transmitted, 0 received, 100% packet loss, time 5ms\n"
    )
    _, (left,) = imported(store, path)
    assert "999999999 probes are more than" in left.why


# --- owping --------------------------------------------------------------------------------------


def test_the_two_sections_of_owping_are_two_directions_of_a_flow(store):
    _, flows = flow_of(store, SAMPLES / "owping" / "default.txt")
    by_way = {flow["direction"]: flow["metrics"] for flow in flows}
    assert by_way["send"]["owd_s"] == pytest.approx(
        {"min": 0.0119e-3, "mean": 0.1e-3, "median": 0.1e-3, "max": 0.249e-3}
    )
    assert by_way["receive"]["owd_s"]["min"] == pytest.approx(0.0129e-3)
    assert by_way["send"]["pdv_p95_p50_s"] == pytest.approx(0.1e-3)
    assert by_way["send"]["packets_sent"] == 100
    assert by_way["send"]["packets_reordered"] == by_way["send"]["hops"]["mean"] == 0
    assert by_way["send"]["clock_synchronized"] == 0
    assert (flows[0]["from"], flows[0]["to"]) == ("localhost", "127.0.0.1")
    with closing(Reader(store)) as reader:
        (stored,) = reader.trials(1)
    begun = time.mktime(time.strptime("2026-11-20 23:50:04", "%Y-%m-%d %H:%M:%S"))
    assert stored.started_time == pytest.approx(begun + 0.215)


def test_synchronized_clocks_have_their_error(store):
    _, flows = flow_of(store, SAMPLES / "owping" / "shim_sync25us.txt")
    for flow in flows:
        assert flow["metrics"]["clock_synchronized"] == 1
        assert flow["metrics"]["owd_error_s"] == pytest.approx(0.0501e-3)


def test_a_figure_that_owping_does_not_know_is_left_out(store):
    _, (flow,) = flow_of(store, SAMPLES / "owping" / "shim_loss_to.txt")
    assert flow["metrics"]["loss_ratio"] == 0.1
    assert "pdv_p95_p50_s" not in flow["metrics"]


def test_summaries_for_machines_are_read_as_in_a_run(store):
    _, flows = flow_of(store, SAMPLES / "owping" / "machine_M.txt")
    assert [flow["direction"] for flow in flows] == ["receive", "send"]
    for flow in flows:
        assert flow["metrics"]["owd_s"].keys() == {"min", "mean", "median", "p95", "max"}
