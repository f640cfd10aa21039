"""The exports that hold every sample, each opened by a program of others."""

import io
import math
import re
import sqlite3
from contextlib import closing

import pytest
from msgspec import structs
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from report.sample_report import REPORT, Stored
from report.whole import whole
from store.store_support import NOW, add_flow, figures, new_run

from benchctl.analysis.flow.figures import distribution
from benchctl.report.exports import influx
from benchctl.report.exports.entries import summary_entry
from benchctl.report.report import StoredRun
from benchctl.run.planned import PlannedRun, PlannedTrial, Settings
from benchctl.run.record import Figure
from benchctl.store.read import Reader
from benchctl.store.record import Recorder, create_run

POINTS = ({"size, in = B": "a b", "n": 1}, {"size, in = B": 'back\\slash "q"', "n": 2})
SAMPLES = [
    ("client", 0, 0.0, {"throughput_bps": 1e6, "tcp_rtt_s": 0.02}),
    ("server", 0, 0.0, {"throughput_bps": 1.1e6}),
    ("client", 1, 0.1, {"throughput_bps": 1 / 3, "tcp_rtt_s": 1e-7}),
]


@pytest.fixture
def stored(tmp_path):
    path = tmp_path / "runs.sqlite"
    values = {axis: [point[axis] for point in POINTS] for axis in POINTS[0]}
    trials = [PlannedTrial(n, 1, point, (), {}, 1.0, 9.0) for n, point in enumerate(POINTS)]
    plan = PlannedRun("p", "", 7, Settings(values, "sequential", ()), trials, "")
    create_run(path, plan, NOW)  # another run, of which nothing may appear
    run_id, _ = create_run(path, plan, NOW)
    recorder = Recorder(path, run_id)
    recorder.update_run(status="running")
    for trial_id in (3, 4):
        recorder.update_trial(trial_id, status="running")
        flow_id = add_flow(recorder, trial_id, started_time=NOW)
        for role, stream, start_s, metrics in SAMPLES:
            recorder.add_sample(
                flow_id, role, stream, "send", start_s, start_s + 0.1, start_s + 0.2, stream == 1,
                metrics,
            )  # fmt: skip
        recorder.add_figures(flow_id, figures())
        recorder.update_flow(flow_id, status="ok")
        recorder.update_trial(trial_id, status="ok")
    recorder.add_note("it rained", "remark", NOW, None, None)
    recorder.update_run(status="ok", finished_time=NOW + 2)
    recorder.close()
    reader = Reader(path)
    yield StoredRun(reader, reader.run(run_id))
    reader.close()


def test_pandas_and_duckdb_read_every_sample_from_parquet(stored, tmp_path):
    import duckdb
    import pandas

    (tmp_path / "run.parquet").write_bytes(whole("parquet", stored))
    frame = pandas.read_parquet(tmp_path / "run.parquet")
    assert set(frame["run"]) == {stored.run.name}
    assert [*frame["trial"]] == [0, 0, 0, 1, 1, 1]
    assert set(frame["axis_n"]) == {1, 2}
    assert set(frame["axis_size, in = B"]) == {point["size, in = B"] for point in POINTS}
    first = frame[frame["trial"] == 0].sort_values(["start_s", "told_by"])
    assert [*first["told_by"]] == ["client", "server", "client"]
    assert [*first["throughput_bps"]] == [1e6, 1.1e6, 1 / 3]
    assert first["tcp_rtt_s"].isna().tolist() == [False, True, False]
    assert [*first["omitted"]] == [False, False, True]
    assert [*first["time"].map(lambda t: t.timestamp())] == pytest.approx(
        [NOW + 0.1, NOW + 0.1, NOW + 0.2], abs=1e-6
    )
    (row,) = duckdb.sql(
        f"SELECT count(*), sum(throughput_bps), max(tcp_rtt_s) FROM '{tmp_path}/run.parquet'"
    ).fetchall()
    assert row == (6, pytest.approx(2 * (2.1e6 + 1 / 3)), 0.02)


def test_a_run_without_samples_is_a_parquet_file_without_rows(tmp_path):
    import pyarrow.parquet

    path = tmp_path / "runs.sqlite"
    run_id, _ = create_run(
        path, PlannedRun("p", "", 7, Settings({}, "sequential", ()), [], ""), NOW
    )
    reader = Reader(path)
    try:
        data = whole("parquet", StoredRun(reader, reader.run(run_id)))
    finally:
        reader.close()
    assert pyarrow.parquet.read_table(io.BytesIO(data)).num_rows == 0


def test_one_run_is_a_store_of_its_own(stored, tmp_path):
    copy = tmp_path / "copy.sqlite"
    copy.write_bytes(whole("sqlite", stored))
    reader = Reader(copy)
    try:
        (run,) = reader.runs()
        assert run == structs.replace(stored.run, id=run.id)
        for form in ("json", "jsonl", "samples", "influx"):
            assert whole(form, StoredRun(reader, run)) == whole(form, stored)
        assert [note.text for note in reader.notes(run.id)] == ["it rained"]
    finally:
        reader.close()


def test_a_column_that_this_program_does_not_know_stays_behind(stored, tmp_path):
    with sqlite3.connect(stored.reader.path) as connection:
        connection.execute('ALTER TABLE run ADD COLUMN "x) --" TEXT')
    connection.close()
    (tmp_path / "copy.sqlite").write_bytes(whole("sqlite", stored))


def test_a_line_of_influxdb_is_a_sample(stored):
    lines = whole("influx", stored).splitlines()
    assert len(lines) == 6
    heads, fields, time_ns = split(lines[0])
    assert heads == {
        "run": stored.run.name, "profile": "p", "trial": "0", "repeat": "1", "flow": "main",
        "attempt": "1", "axis_size, in = B": "a b", "axis_n": "1", "told_by": "client",
        "stream": "0", "direction": "send", "omitted": "false",
    }  # fmt: skip
    assert fields == {"throughput_bps": "1000000.0", "tcp_rtt_s": "0.02"}
    assert int(time_ns) == pytest.approx((NOW + 0.1) * 1e9, abs=1000)
    assert split(lines[3])[0]["axis_size, in = B"] == 'back\\slash "q"'


def test_a_tag_of_influxdb_is_never_empty():
    assert influx._tags({"axis_x": "\\", "axis_y": "", "n": 0}) == ",n=0"


def split(line):
    """Read a line as docs.influxdata.com/influxdb/v2/reference/syntax/line-protocol has it."""
    words, word, marks = [], "", iter(line)
    for mark in marks:
        if mark == "\\":
            after = next(marks)
            word += after if after in ",= " else mark + after
        elif mark in ",= ":
            words += [word, mark]
            word = ""
        else:
            word += mark
    words.append(word)
    assert words.count(" ") == 2
    first, second = (at for at, one in enumerate(words) if one == " ")
    assert words[0] == "benchctl"
    return pairs(words[2:first]), pairs(words[first + 1 : second]), words[-1]


def pairs(words):
    return dict(zip(words[::4], words[2::4], strict=True))


def test_prometheus_reads_the_mean_of_every_metric():
    text = whole("openmetrics", Stored(REPORT))
    families = {one.name: one for one in text_string_to_metric_families(text)}
    rate = families["benchctl_throughput_bits_per_second"]
    assert (rate.type, rate.unit) == ("gauge", "bits_per_second")
    told = [summary_entry(row) for row in REPORT.summary]
    rates = [one["mean"] for one in told if one["metric"] == "throughput_bps"]
    assert [sample.value for sample in rate.samples] == rates
    assert rate.samples[0].labels == {
        "profile": "sample", "flow": "bulk", "direction": "send", "axis_streams": "1",
        "axis_to": "paris",
    }  # fmt: skip
    low, high = (
        families[f"benchctl_throughput_ci95_{end}_bits_per_second"].samples
        for end in ("low", "high")
    )
    assert [(one.value, other.value) for one, other in zip(low, high, strict=True)] == [
        (one["ci95_low"], one["ci95_high"])
        for one in told
        if one["metric"] == "throughput_bps" and one["ci95_low"] is not None
    ]
    assert families["benchctl_rtt_seconds"].samples[0].value == 0.02041
    assert [one.value for one in families["benchctl_expectation_met"].samples] == [0, 1]
    assert math.isclose(
        families["benchctl_run_finished_seconds"].samples[0].value, REPORT.run.finished_time
    )
    assert all(one.timestamp is None for family in families.values() for one in family.samples)


def test_prometheus_reads_the_95th_percentile_of_a_distribution(tmp_path):
    store = tmp_path / "runs.sqlite"
    run_id, _ = new_run(store, trials=2)
    with closing(Recorder(store, run_id)) as recorder, closing(Reader(store)) as reader:
        recorder.update_run(status="running")
        for trial, p95 in zip(reader.trials(run_id), (0.03, 0.05), strict=True):
            flow_id = add_flow(recorder, trial.id, status="ok")
            figure = Figure(0.02, "samples", {"p95": p95})
            recorder.add_figures(flow_id, {("round-trip", "rtt_s"): figure})
            recorder.update_trial(trial.id, status="running")
            recorder.update_trial(trial.id, status="ok")
        recorder.update_run(status="ok")
        text = whole("openmetrics", StoredRun(reader, reader.run(run_id)))
    families = {one.name: one for one in text_string_to_metric_families(text)}
    assert [one.value for one in families["benchctl_rtt_p95_seconds"].samples] == [0.03, 0.05]


@pytest.fixture
def apart(tmp_path):
    """A run whose clocks are apart by more than the delay."""
    path = tmp_path / "apart.sqlite"
    trials = [PlannedTrial(0, 1, {}, (), {}, 1.0, 9.0)]
    run_id, _ = create_run(
        path, PlannedRun("p", "", 7, Settings({}, "listed", ()), trials, ""), NOW
    )
    recorder = Recorder(path, run_id)
    recorder.update_run(status="running")
    recorder.update_trial(1, status="running")
    flow_id = add_flow(recorder, 1, started_time=NOW)
    for at_s, delay_s in enumerate((-0.049, -0.0485)):
        recorder.add_sample(
            flow_id, "client", 0, "receive", at_s, at_s, at_s, False, {"owd_s": delay_s}
        )
    recorder.add_figures(flow_id, {("receive", "owd_s"): distribution([-0.049, -0.0485])})
    recorder.update_flow(flow_id, status="ok")
    recorder.update_trial(1, status="ok")
    recorder.update_run(status="ok", finished_time=NOW + 2)
    recorder.close()
    reader = Reader(path)
    yield StoredRun(reader, reader.run(run_id))
    reader.close()


@pytest.mark.parametrize("form", ["samples", "influx", "jsonl", "json", "csv", "openmetrics"])
def test_negative_delays_stay_negative_in_every_export(form, apart):
    text = whole(form, apart)
    assert "-0.04" in text
    assert not re.search(r"(?<![-\d.])0\.04[89]", text)


def test_negative_delays_stay_negative_in_parquet(apart, tmp_path):
    import pandas

    (tmp_path / "run.parquet").write_bytes(whole("parquet", apart))
    assert [*pandas.read_parquet(tmp_path / "run.parquet")["owd_s"]] == [-0.049, -0.0485]
