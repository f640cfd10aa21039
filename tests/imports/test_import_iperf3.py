"""``benchctl import`` of iperf3's JSON: what it becomes, and the faults that it has."""

import json

import pytest
from imports.reports import BEGUN, SAMPLES, document, imported, only, report, write


@pytest.fixture
def store(tmp_path):
    return tmp_path / "runs.sqlite"


def test_a_report_becomes_a_trial_with_its_times_figures_settings_and_facts(store, tmp_path):
    run = only(store, write(tmp_path / "old.json", report()))
    assert (run["run"]["profile"], run["run"]["origin"], run["run"]["status"]) == (
        "old", "iperf3", "ok",
    )  # fmt: skip
    assert run["run"]["facts"] == {
        "system": "Linux", "hostname": "lab-1", "kernel": "6.1.0-9-amd64", "machine": "x86_64",
        "iperf3": "3.12",
    }  # fmt: skip
    (trial,) = run["trials"]
    (flow,) = trial["flows"]
    assert trial["file"] == str(tmp_path / "old.json")
    assert (flow["from"], flow["to"], flow["port"]) == ("lab-1", "paris", 5201)
    assert flow["metrics"]["throughput_bps"] == 8e6
    assert flow["sources"]["throughput_bps"] == "tool"
    assert flow["metrics"]["tcp_rtt_s"]["median"] == 0.002
    assert flow["requested"] == {
        "protocol": "tcp", "duration": 3.0, "streams": 1, "congestion_control": "cubic",
    }  # fmt: skip
    assert run["notes"] == []


def test_its_times_are_those_of_the_file(store, tmp_path):
    from contextlib import closing

    from benchctl.store.read import Reader

    imported(store, write(tmp_path / "old.json", report(seconds=5)))
    with closing(Reader(store)) as reader:
        run = reader.find("last")
        (trial,) = reader.trials(run.id)
        samples = [*reader.samples_of_trial(trial.id)]
    assert run.created_time == run.started_time == trial.started_time == BEGUN
    assert run.finished_time == trial.finished_time == BEGUN + 5
    assert [(one.start_s, one.end_s, one.arrived_s) for one in samples] == [
        (n, n + 1, n + 1) for n in range(5)
    ]


def test_what_differs_between_files_becomes_axes_and_the_rest_repeats(store, tmp_path):
    for n, (streams, window) in enumerate([(8, 0), (1, 262144), (8, 262144), (1, 0), (8, 0)]):
        one = report(streams=streams, sock_bufsize=window, at=BEGUN + 100 * n)
        write(tmp_path / "sweep" / f"{9 - n}.json", one)
    run = only(store, tmp_path / "sweep")
    assert run["run"]["profile"] == "sweep"
    assert run["run"]["axes"] == {"streams": [1, 8], "window": ["256K", "default"]}
    assert [(t["point"]["streams"], t["point"]["window"], t["repeat"]) for t in run["trials"]] == [
        (8, "default", 1), (1, "256K", 1), (8, "256K", 1), (1, "default", 1), (8, "default", 2),
    ]  # fmt: skip


def test_targets_directions_and_hosts_are_axes_too(store, tmp_path):
    paths = [
        write(tmp_path / "a.json", report(at=BEGUN)),
        write(tmp_path / "b.json", report(at=BEGUN + 10, reverse=True, host="tashkent")),
    ]
    run = only(store, *paths)
    assert run["run"]["axes"] == {"to": ["paris", "tashkent"], "direction": ["receive", "send"]}


@pytest.mark.parametrize(
    ("name", "direction", "metric", "value"),
    [
        ("3.12_tcp_J", "send", "throughput_bps", None),
        ("3.12_udp_loss_R_J", "receive", "loss_ratio", None),
        ("3.21_tcp_O1_J", "send", "throughput_bps", None),
        ("3.21_stream_P4", "send", "throughput_bps", None),
    ],
)
def test_the_figure_is_the_last_line_of_the_tool(store, name, direction, metric, value):
    path = SAMPLES / "iperf3" / f"{name}.json"
    (flow,) = only(store, path)["trials"][0]["flows"]
    text = path.read_text()
    end = (
        json.loads(text)["end"]
        if text.startswith("{\n")
        else json.loads(text.splitlines()[-1])["data"]
    )
    said = end["sum_received"]
    expected = (
        said["bits_per_second"]
        if metric == "throughput_bps"
        else said["lost_packets"] / said["packets"]
    )
    assert flow["direction"] == direction
    assert flow["metrics"][metric] == pytest.approx(expected)


def test_both_directions_of_one_report_are_one_flow(store):
    flows = only(store, SAMPLES / "iperf3" / "3.12_tcp_bidir_J.json")["trials"][0]["flows"]
    assert [flow["direction"] for flow in flows] == ["receive", "send"]
    assert [flow["metrics"]["bytes_received"] for flow in flows] == [7595753472, 7588937728]


def test_a_report_of_a_server_has_the_clients_direction(store):
    run = only(store, SAMPLES / "iperf3" / "3.12_server_oneoff_J.json")
    (flow,) = run["trials"][0]["flows"]
    assert flow["direction"] == "send"
    assert flow["metrics"]["bytes_received"] == 4913889280
    assert "sent_bps" not in flow["metrics"]
    assert "cpu_client_ratio" not in flow["metrics"]
    assert "the server's report" in run["notes"][0]


# --- the faults of iperf3's JSON -----------------------------------------------------------------


@pytest.mark.parametrize("word", ["nan", "-nan", "NaN", "inf", "-Infinity"])
def test_a_number_that_is_none_is_unknown_and_noted(store, tmp_path, word):
    data = report()
    data["end"]["sum_sent"]["bits_per_second"] = data["intervals"][0]["streams"][0]["rtt"] = "@"
    path = tmp_path / "nan.json"
    path.write_text(json.dumps(data).replace('"@"', word))
    run = only(store, path)
    assert run["trials"][0]["flows"][0]["metrics"]["throughput_bps"] == 8e6
    assert run["notes"] == [f"{path}: 2 values of the file are no numbers (nan, inf), and unknown"]


def test_a_name_that_looks_like_no_number_stays(store, tmp_path):
    data = report(host='nan: nan, inf "quoted" [')
    data["end"]["sum_sent"]["bits_per_second"] = "@"
    path = tmp_path / "nan.json"
    path.write_text(json.dumps(data).replace('"@"', "nan"))
    assert only(store, path)["trials"][0]["flows"][0]["to"] == 'nan: nan, inf "quoted" ['


def test_a_report_that_stands_twice_counts_once(store, tmp_path):
    one, other = report(), report(at=BEGUN + 60)
    run = only(store, write(tmp_path / "log.json", one, one, other))
    assert len(run["trials"]) == 2
    assert run["notes"] == [f"{tmp_path / 'log.json'}: the file has this report 2 times"]


def test_text_between_reports_is_noted(store, tmp_path):
    path = tmp_path / "log.json"
    path.write_text(f"warning: UDP is slow\n{json.dumps(report())}\niperf3: done\n")
    assert only(store, path)["notes"] == [
        f"{path}: skipped text that is no JSON: warning: UDP is slow",
        f"{path}: skipped text that is no JSON: iperf3: done",
    ]


def test_an_error_is_a_failed_trial_whatever_the_exit_code_was(store, tmp_path):
    run = only(store, SAMPLES / "iperf3" / "3.12_fail_busy_J.json")
    (trial,) = run["trials"]
    assert run["run"]["status"] == trial["status"] == "failed"
    assert trial["error"] == "iperf3: the server is busy running a test. try again later"


@pytest.mark.parametrize("name", ["3.12_client_SIGINT_J", "3.21_stream_SIGINT"])
def test_an_interrupted_test_keeps_its_samples(store, name):
    from contextlib import closing

    from benchctl.store.read import Reader

    (trial,) = only(store, SAMPLES / "iperf3" / f"{name}.json")["trials"]
    assert trial["status"] == "failed"
    with closing(Reader(store)) as reader:
        assert len([*reader.samples_of_trial(1)]) >= 2


def test_a_file_that_is_cut_anywhere_is_read_up_to_there_or_refused_in_a_line(store, tmp_path):
    whole = json.dumps(report(seconds=4), indent="\t")
    kept = set()
    for cut in range(0, len(whole) - 1, 61):
        path = tmp_path / f"{cut}.json"
        path.write_text(whole[:cut])
        runs, left = imported(store, path)
        if runs:
            (trial,) = document(store)["trials"]
            assert trial["status"] == "failed"
            if (at := trial["error"].find("after ")) >= 0:
                kept.add(int(trial["error"][at:].split()[1]))
        else:
            assert len(left) == 1
    assert kept == {0, 1, 2, 3, 4}


def test_a_trial_that_never_began_has_unknown_settings_at_the_axes_of_others(store, tmp_path):
    for n, streams in enumerate((1, 4)):
        write(tmp_path / "d" / f"{n}.json", report(streams=streams, at=BEGUN + n))
    failed = {
        "start": {"connected": [], "version": "iperf 3.12"}, "intervals": [], "end": {},
        "error": "unable to connect to server: Connection refused",
    }  # fmt: skip
    write(tmp_path / "d" / "2.json", failed)
    run = only(store, tmp_path / "d")
    assert run["run"]["axes"] == {"streams": [1, 4, "unknown"]}
    assert "has no time" in run["notes"][0]
