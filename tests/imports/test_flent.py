"""Files of flent: read, written, and opened by flent itself."""

import csv
import gzip
import io
import json
import subprocess
from contextlib import closing
from statistics import fmean, median

import pytest
from imports.reports import BEGUN, document, imported, only
from report.whole import whole
from store.store_support import measured_run, new_run

from benchctl.cli.commands.export import export
from benchctl.errors import UsageError
from benchctl.report.report import StoredRun
from benchctl.store.read import Reader
from benchctl.store.record import Recorder

UP, DOWN, RTTS = (50.0, 60.0, 55.0, 58.0), (90.0, 91.0, 92.0, 93.0), (10.0, 30.0, 20.0, 25.0)


def points(values, dur=True):
    return [
        {"t": BEGUN + n + 1.25, "val": value, **({"dur": 1.0} if dur else {})}
        for n, value in enumerate(values)
    ]


def flent(**changes):
    """Return a data file of flent as data."""
    return {
        "version": 4,
        "metadata": {
            "NAME": "tcp_nup", "TITLE": "fq_codel", "T0": "2023-11-14T22:13:20.250000Z",
            "TIME": "2023-11-14T22:13:19.0Z", "HOST": "paris", "LOCAL_HOST": "lab-1", "LENGTH": 4,
            "KERNEL_RELEASE": "6.1.0", "FLENT_VERSION": "2.1.1", "SERIES_META": {},
        },
        "x_values": [0.0], "results": {"TCP upload sum": [None]},
        "raw_values": {
            "TCP upload::1": points(UP), "TCP upload::2": points(UP), "TCP download": points(DOWN),
            "Ping (ms) ICMP": points(RTTS, dur=False), "TCP upload sum": [],
            "Airtime": points((1.0,)),
        },
        **changes,
    }  # fmt: skip


def save(path, data):
    path.write_bytes(gzip.compress(json.dumps(data).encode()))
    return path


@pytest.fixture
def store(tmp_path):
    return tmp_path / "runs.sqlite"


def test_its_data_sets_are_flows_of_one_trial(store, tmp_path):
    path = save(tmp_path / "one.flent.gz", flent())
    run = only(store, path)
    assert (run["run"]["profile"], run["run"]["origin"]) == ("one", "flent")
    assert run["run"]["facts"] == {"hostname": "lab-1", "kernel": "6.1.0", "flent": "2.1.1"}
    (trial,) = run["trials"]
    flows = {flow["name"]: flow for flow in trial["flows"]}
    assert {name: (flow["direction"], flow["to"]) for name, flow in flows.items()} == {
        "TCP upload": ("send", "paris"), "TCP download": ("receive", "paris"),
        "Ping (ms) ICMP": ("round-trip", "paris"),
    }  # fmt: skip
    assert flows["TCP upload"]["metrics"]["sent_bps"] == pytest.approx(2e6 * fmean(UP))
    assert flows["TCP download"]["metrics"]["throughput_bps"] == pytest.approx(1e6 * fmean(DOWN))
    rtt_s = flows["Ping (ms) ICMP"]["metrics"]["rtt_s"]
    assert rtt_s["median"] == pytest.approx(median(RTTS) / 1e3)
    with closing(Reader(store)) as reader:
        assert reader.run(1).started_time == BEGUN + 0.25
    assert run["notes"] == [f"{path}: data sets that are not read: Airtime"]


def test_titles_of_flents_files_are_an_axis(store, tmp_path):
    (tmp_path / "d").mkdir()
    for n, title in enumerate(("pfifo", "fq_codel", "pfifo")):
        one = flent(raw_values={"Ping (ms) ICMP": [{"t": BEGUN + 60 * n + 1, "val": 20.0}]})
        one["metadata"] |= {"TITLE": title, "T0": f"2023-11-14T22:{13 + n}:20.000000Z"}
        save(tmp_path / "d" / f"{n}.flent.gz", one)
    run = only(store, tmp_path / "d")
    assert run["run"]["axes"] == {"title": ["fq_codel", "pfifo"]}
    assert [trial["repeat"] for trial in run["trials"]] == [1, 1, 2]


@pytest.mark.parametrize(
    "broken",
    [
        flent(raw_values={}),
        flent(raw_values={"Airtime": points((1.0,))}),
        flent(raw_values={"TCP upload": [{"t": 1e300, "val": 1.0}]}),
        flent(raw_values={"TCP upload": [{"t": float("nan"), "val": 1.0}]}),
        flent(raw_values={"TCP upload": [{"t": "now", "val": 1.0}]}),
        flent(raw_values=[1, 2]),
        flent(metadata=None),
        flent(version=5),
        flent(version="x"),
    ],
)
def test_a_file_that_flent_would_not_write_ends_in_a_line(store, tmp_path, broken):
    runs, (left,) = imported(store, save(tmp_path / "a.flent.gz", broken))
    assert runs == []
    assert left.why


def test_a_truncated_file_ends_in_a_line(store, tmp_path):
    path = save(tmp_path / "a.flent.gz", flent())
    path.write_bytes(path.read_bytes()[:-40])
    runs, (left,) = imported(store, path)
    assert runs == []
    assert left.why.startswith(("not whole", "is of no kind"))


# --- written -------------------------------------------------------------------------------------


def write_run(store, *, ping=True, ways=("send",)):
    """Write a run of one trial: two streams each way, and pings."""
    run_id, name = new_run(store, now=BEGUN)
    with closing(Recorder(store, run_id)) as recorder:
        recorder.update_run(status="running", started_time=BEGUN)
        recorder.update_trial(1, status="running", started_time=BEGUN)
        for way in ways:
            flow_id = add_flow(recorder, way, "bulk" + way)
            for n in range(40):
                for stream in (0, 1):
                    rate = 1e6 * (50 + n % 7 + stream)
                    recorder.add_sample(
                        flow_id, "client", stream, way, n / 10, (n + 1) / 10, (n + 1) / 10, n < 5,
                        {"sent_bps": rate * 2, "throughput_bps": rate},
                    )  # fmt: skip
        if ping:
            flow_id = add_flow(recorder, "round-trip", "ping")
            for n in range(20):
                rtt_s = 0.010 + n % 5 / 1000
                recorder.add_sample(
                    flow_id, "client", 0, "round-trip", n / 5, n / 5 + rtt_s, n / 5, False,
                    {"rtt_s": rtt_s},
                )  # fmt: skip
        recorder.update_trial(1, status="ok", finished_time=BEGUN + 4)
        recorder.update_run(status="ok", finished_time=BEGUN + 4)
    return name


def add_flow(recorder, direction, name):
    return recorder.add_flow(
        1, attempt=1, name=name, backend="iperf3", source="lab-1", target="paris", port=5201,
        direction=direction, status="ok", client=[], server=[], requested={"protocol": "tcp"},
        started_time=BEGUN,
    )  # fmt: skip


def written(store, **options):
    with closing(Reader(store)) as reader:
        return whole("flent", StoredRun(reader, reader.run(1), **options))


@pytest.mark.parametrize(
    ("options", "test", "names"),
    [
        ({}, "tcp_nup", {"TCP upload::1", "TCP upload::2", "Ping (ms) ICMP"}),
        (
            {"ways": ("receive",), "ping": False},
            "tcp_ndown",
            {"TCP download::1", "TCP download::2"},
        ),
        ({"ways": ()}, "ping", {"Ping (ms) ICMP"}),
        (
            {"ways": ("send", "receive"), "ping": False},
            "rrul_be_nflows",
            {f"TCP {way} BE::{n}" for way in ("upload", "download") for n in (1, 2)},
        ),
    ],
)
def test_a_trial_is_the_test_of_flent_that_has_its_data_sets(store, options, test, names):
    write_run(store, **options)
    data = json.loads(gzip.decompress(written(store)))
    assert data["metadata"]["NAME"] == test
    assert data["raw_values"].keys() == names
    assert all(len(values) == len(data["x_values"]) for values in data["results"].values())


def test_equal_data_are_equal_bytes(store):
    write_run(store)
    assert written(store) == written(store)


def test_what_comes_back_from_flents_format_has_the_same_figures(store, tmp_path):
    from benchctl.analysis.flow.figures import FlowFold
    from benchctl.metrics import Sample

    write_run(store)
    (tmp_path / "one.flent.gz").write_bytes(written(store))
    run = only(tmp_path / "other.sqlite", tmp_path / "one.flent.gz")
    flows = {flow["name"]: flow["metrics"] for flow in run["trials"][0]["flows"]}
    with closing(Reader(store)) as reader:
        folds = {}
        for one in reader.samples_of_trial(1):
            fold = folds.setdefault(one.direction, FlowFold())
            fold.add_sample(one.role, Sample(
                one.start_s, one.end_s, one.metrics, one.stream, one.direction, one.omitted
            ))  # fmt: skip
    sent = folds["send"].figures()["send", "throughput_bps"].value
    assert flows["TCP upload"]["throughput_bps"] == pytest.approx(sent, rel=1e-5)
    rtt = folds["round-trip"].figures()["round-trip", "rtt_s"]
    assert flows["Ping (ms) ICMP"]["rtt_s"]["median"] == pytest.approx(rtt.spread["median"])
    assert flows["Ping (ms) ICMP"]["rtt_s"]["p95"] == pytest.approx(rtt.spread["p95"])


def test_a_run_of_several_trials_needs_a_choice_or_a_directory(store, tmp_path):
    measured_run(store, {1: (1e6, 2e6)})
    with pytest.raises(UsageError, match="has 2"):
        written(store)
    with pytest.raises(UsageError, match="no trial 3"):
        written(store, trial=3)
    with pytest.raises(UsageError, match="no sample"):
        written(store, trial=1)
    imported(tmp_path / "b.sqlite", save(tmp_path / "a.flent.gz", flent()))
    (tmp_path / "out").mkdir()
    export("last", form="flent", output=tmp_path / "out", store=tmp_path / "b.sqlite")
    name = document(tmp_path / "b.sqlite")["run"]["id"]
    assert [path.name for path in (tmp_path / "out").iterdir()] == [f"{name}-1.flent.gz"]


@pytest.mark.tool("flent")
def test_flent_opens_it_and_has_the_same_figures(store, tmp_path):
    write_run(store)
    path = tmp_path / "one.flent.gz"
    path.write_bytes(written(store))
    shown = subprocess.run(
        ["flent", "-i", str(path), "-f", "csv"], capture_output=True, text=True, check=True
    ).stdout
    rows = [*csv.DictReader(io.StringIO(shown[shown.index("tcp_nup") :]))]  # after its greeting
    data = json.loads(gzip.decompress(path.read_bytes()))
    assert {"TCP upload::1", "TCP upload sum", "Ping (ms) ICMP"} <= rows[0].keys()
    for name, values in data["results"].items():
        told = [float(row[name]) if row[name] else None for row in rows]
        assert told == pytest.approx(values), name
