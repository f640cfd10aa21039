"""The runs that exporters are tried on are what exporters get of runs in a store."""

import dataclasses
import json
from contextlib import closing

from msgspec.structs import replace
from store.store_support import NOW, add_flow

from benchctl.exporter import Exporter
from benchctl.report.exports.promised import promised
from benchctl.report.report import StoredRun
from benchctl.run.planned import PlannedRun, PlannedTrial, Settings
from benchctl.run.record import CpuUse, Figure, HostCounters, InterfaceCounters
from benchctl.store.read import Reader
from benchctl.store.record import Recorder, create_run
from benchctl.testing.sample_runs import FILE, sample_runs

TITLE = 'Odd "texts", <tags> & \x1b[31mcolours\x1b[0m; 速度\n=1+1'
AXES = {"streams": (1, 2), "queue, of = a": ("fq codel", 'µ"1"\\')}
NAME = "20261121-002512-7f3a9c"
COUNTERS = {
    "local": HostCounters(
        0.6,
        {"wg0": InterfaceCounters(1 << 33, 6_000_000, 0, 12, 9000, 90, 0, 0)},
        {"udp_receive_buffer_errors": 3, "tcp_segments_retransmitted": 0},
        CpuUse(2, 0.5, 1, 1.0, 0.25, 0.0),
    ),
    "paris": HostCounters(0.0, unread="host paris: it is gone"),
}


class Format(Exporter):
    name, about, endings = "sample", "a sample", ()

    def __init__(self, single_trial):
        self.single_trial = single_trial

    def export(self, run):
        raise NotImplementedError


def write_run(store):
    """Write a run of four trials: a good one, a failed one, one tried twice, and one not begun."""
    points = [{"streams": n, "queue, of = a": q} for n in (1, 2) for q in AXES["queue, of = a"]]
    trials = [PlannedTrial(n, 1, point, (), {}, 1.0, 9.0) for n, point in enumerate(points)]
    settings = Settings(AXES, "sequential", ())
    run_id, name = create_run(store, PlannedRun("odd", TITLE, 7, settings, trials, ""), NOW)
    with closing(Recorder(store, run_id)) as recorder:
        recorder.update_run(status="running", started_time=NOW)
        for trial_id, attempts in ((1, (True,)), (2, (False,)), (3, (False, True))):
            recorder.update_trial(trial_id, status="running", started_time=NOW + trial_id)
            for attempt, is_good in enumerate(attempts, 1):
                write_attempt(recorder, trial_id, attempt, is_good=is_good)
            error = "" if attempts[-1] else "main: no luck\x07 today"
            status = "ok" if attempts[-1] else "failed"
            recorder.update_trial(
                trial_id, status=status, error=error, finished_time=NOW + trial_id + 0.5
            )
        recorder.update_trial(1, counters=COUNTERS)
        recorder.add_note("it rained", "remark", NOW + 1, 1, None)
        recorder.update_run(status="interrupted", finished_time=NOW + 9)
    return name


def write_attempt(recorder, trial_id, attempt, *, is_good):
    begun = NOW + trial_id + 0.1
    status = "ok" if is_good else "failed"
    both = add_flow(
        recorder, trial_id, name="main, \u202eboth", attempt=attempt, backend="simpleperf",
        direction="both", status=status, started_time=begun, effective={"protocol": "tcp"},
    )  # fmt: skip
    never = None if not is_good else begun
    probe = add_flow(
        recorder, trial_id, name="ping", attempt=attempt, backend="ping", direction="round-trip",
        port=None, status=status, started_time=never,
    )  # fmt: skip
    for n in range(4 if is_good else 1):
        for stream in (0, 1):
            for role, way, metric in (
                ("client", "send", "sent_bps"), ("server", "send", "throughput_bps"),
                ("client", "receive", "throughput_bps"),
            ):  # fmt: skip
                values = {metric: 1e6 / 3 + n, "tcp_rtt_s": 1e-7}
                recorder.add_sample(
                    both, role, stream, way, (n - 1) / 10, n / 10, n / 10, n == 0, values
                )
    if is_good:
        for n in range(4):
            values = {"rtt_s": 0.02 + n / 1e4, "packets_lost": float(n == 2)}
            recorder.add_sample(
                probe, "client", 0, "round-trip", n / 10, n / 10, n / 10, False, values
            )
        for way in ("send", "receive"):
            figure = {(way, "throughput_bps"): Figure(2e6 / 3, "tool")}
            recorder.add_figures(both, figure)
        rtt = Figure(0.02, "samples", {"min": 0.01, "median": 0.02, "p95": 0.03, "max": 0.031})
        recorder.add_figures(probe, {("round-trip", "rtt_s"): rtt})


def as_data(name, stored, *, is_trial):
    run = promised(stored, Format(is_trial))
    text = json.dumps({"document": run.document, "samples": [*run.samples()]})
    data = json.loads(text.replace(stored.run.name, NAME))
    return {"name": name, "is_trial": is_trial, **data}


def test_sample_runs_are_what_exporters_get(tmp_path, request):
    write_run(tmp_path / "odd.sqlite")
    create_run(
        tmp_path / "no.sqlite",
        PlannedRun("none", "", 7, Settings({}, "sequential", ()), [], ""),
        NOW,
    )
    with (
        closing(Reader(tmp_path / "odd.sqlite")) as reader,
        closing(Reader(tmp_path / "no.sqlite")) as empty,
    ):
        stored = StoredRun(reader, reader.run(1))
        runs = [
            as_data("a run with odd texts", stored, is_trial=False),
            as_data("a run without trials", StoredRun(empty, empty.run(1)), is_trial=False),
            *(
                as_data(f"trial {number} of it", replace(stored, trial=number), is_trial=True)
                for number in (1, 2, 3)
            ),
        ]
    text = json.dumps(runs, indent=1) + "\n"
    if request.config.getoption("--update-golden"):
        FILE.write_text(text, encoding="utf-8")
    assert text == FILE.read_text(encoding="utf-8")


def test_a_sample_run_can_be_long():
    whole = max(sample_runs(single_trial=False), key=lambda one: one.count)
    rows = [*dataclasses.replace(whole, count=3 * whole.count).samples()]
    assert rows[: whole.count] == [*whole.samples()]
    times = [row["start_s"] for row in rows[:: whole.count]]
    assert times == [times[0], times[0] + 1, times[0] + 2]
