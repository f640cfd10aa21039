"""A measured run with everything that a figure can show, made from theory and seeded noise."""

import random
from contextlib import closing

from benchctl.metrics import Direction
from benchctl.run.planned import PlannedFlow, PlannedRun, PlannedTrial, Reported, Settings
from benchctl.run.record import Figure, FlowEvent, Happening
from benchctl.store.read import Reader
from benchctl.store.record import Recorder, create_run

NOW = 1_795_225_512.0
WINDOWS = {"5000B": 5000, "10000B": 10_000, "20000B": 20_000, "60000B": 60_000}
RTT_S, RATE_BPS, DURATION_S = 0.01, 20e6, 10.0
LINK = {
    "link": "far", "from": "a", "to": "b", "arrived": 9, "delivered": 9, "dropped": 0, "lost": 0,
    "queued": 0, "queue_max": 0, "late": 1, "missed": 0, "refused": 0, "late_max_s": 0.1,
    "kept": False,
}  # fmt: skip
DROP = FlowEvent("send", "throughput_bps", Happening.DROP, 7.0, None, 20e6, 10e6, 0.9999)


def pictured_run(
    store, *, values=None, repeats=3, title="Windows below and above the product", samples=True,
    status="ok", sampled_s=0.5, lab=None, rate_bps=RATE_BPS,
):  # fmt: skip
    """Write a run of the axes ``values``, those of a window and of streams by default.

    Its sixth trial failed, and in its second the lab did not keep up; all fail with another status.
    The path carries ``rate_bps``.
    """
    values = {"window": tuple(WINDOWS), "streams": (1, 2)} if values is None else values
    points = [{}]
    for axis, ones in values.items():
        points = [{**point, axis: one} for point in points for one in ones]
    planned = []
    for repeat in range(1, repeats + 1):
        for point in points:
            asked = {"streams": point.get("streams", 1)}
            flow = PlannedFlow("main", "iperf3", "a", "b", None, Direction.SEND, 0.0, asked)
            planned.append(PlannedTrial(len(planned), repeat, point, (flow,), {}, DURATION_S, 99.0))
    reported = (Reported("main", None, {"streams": 1}, {"throughput_bps": 9e6}),)
    settings = Settings(values, "sequential", (), reported=reported, lab=lab)
    new = PlannedRun("pictured", title, 7, settings, planned, "")
    run_id, name = create_run(store, new, NOW)
    recorder = Recorder(store, run_id)
    recorder.update_run(status="running", started_time=NOW)
    rng = random.Random(7)
    with closing(Reader(store)) as reader:
        trial_ids = [trial.id for trial in reader.trials(run_id)]
    for trial_id, trial in zip(trial_ids, planned, strict=True):
        failed = status != "ok" or trial.position == 5
        _measure(recorder, trial_id, trial, rng, failed, sampled_s if samples else 0.0, rate_bps)
    recorder.update_run(status=status, finished_time=NOW + 60)
    recorder.close()
    return name


def _measure(recorder, trial_id, trial, rng, failed, sampled_s, rate_bps):
    streams = trial.point.get("streams", 1)
    window = WINDOWS.get(trial.point.get("window"), 10_000)
    share = min(rate_bps, streams * window * 8 / RTT_S)
    outcome = "failed" if failed else "ok"
    flow_id = recorder.add_flow(
        trial_id, attempt=1, name="main", backend="iperf3", source="a", target="b",
        direction="send", status=outcome, client=[], server=[],
        requested={"streams": streams, "window": window},
        expected={"send": {"throughput_bps": share}},
    )  # fmt: skip
    rtt_s = max(RTT_S, streams * window * 8 / rate_bps)
    for place in range(round(DURATION_S / sampled_s) if sampled_s and not failed else 0):
        begin_s = place * sampled_s
        level = 0.5 if begin_s >= DROP.at_s and trial.position == 6 else 1.0
        for stream in range(streams):
            recorder.add_sample(
                flow_id, "client", stream, "send", begin_s, begin_s + sampled_s, begin_s, False,
                {
                    "throughput_bps": share / streams * level * rng.uniform(0.9, 1.0),
                    "tcp_rtt_s": rtt_s * rng.uniform(1.0, 1.1),
                    "cwnd_bytes": 1.2 * window,
                },
            )  # fmt: skip
    if not failed:
        spread = {"min": rtt_s, "median": rtt_s * 1.05, "p95": rtt_s * 1.1, "max": rtt_s * 1.2}
        told = {
            "throughput_bps": Figure(share * rng.uniform(0.9, 1.0), "tool"),
            "tcp_rtt_s": Figure(rtt_s * 1.05, "samples", spread),
            "tcp_min_rtt_s": Figure(RTT_S, "samples", spread),
            "peer_window_bytes": Figure(float(window), "samples", spread),
            "cwnd_bytes": Figure(1.2 * window, "samples", spread),
        }
        recorder.add_figures(flow_id, {("send", metric): one for metric, one in told.items()})
        if trial.position == 6:
            recorder.add_events(flow_id, [DROP])
    recorder.update_trial(trial_id, status="running", links=[LINK] if trial.position == 1 else [])
    recorder.update_trial(
        trial_id, status=outcome, error="main: refused" if failed else "",
        started_time=NOW, finished_time=NOW + DURATION_S,
    )  # fmt: skip
