"""Small runs in a store."""

from benchctl.run.planned import PlannedRun, PlannedTrial, Settings
from benchctl.run.record import Figure
from benchctl.store.record import create_run

NOW = 1_795_225_512.0
"""2026-11-21 00:25:12 UTC."""
SETTINGS = Settings({}, "sequential", ())


def new_run(store, trials=1, now=NOW):
    """Write a planned run; returns its id and its name."""
    planned = [PlannedTrial(n, n + 1, {"n": n}, (), {}, 1.0, 16.0) for n in range(trials)]
    return create_run(store, PlannedRun("p", "", 7, SETTINGS, planned, ""), now)


def add_flow(recorder, trial_id=1, **columns):
    """Write one attempt of a flow; returns its id."""
    return recorder.add_flow(
        trial_id,
        **{
            "attempt": 1, "name": "main", "backend": "fake", "source": "local", "target": "local",
            "direction": "send", "port": 5201, "status": "running", "client": ["client", "-1"],
            "server": [], "requested": {"duration": 1.0}, **columns,
        },
    )  # fmt: skip


def add_sample(recorder, flow_id, start_s=0.0, metrics=None, stream=0, role="client"):
    """Gather a sample of a tenth of a second."""
    recorder.add_sample(
        flow_id, role, stream, "send", start_s, start_s + 0.1, start_s + 0.11, False,
        metrics or {"throughput_bps": 1e6},
    )  # fmt: skip


def figures(value=1e6):
    return {("send", "throughput_bps"): Figure(value, "tool")}
