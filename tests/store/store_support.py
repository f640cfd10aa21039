"""Small runs in a store."""

from contextlib import closing

from benchctl.run.planned import PlannedRun, PlannedTrial, Settings
from benchctl.run.record import Figure
from benchctl.store.read import Reader
from benchctl.store.record import Recorder, create_run

NOW = 1_795_225_512.0
"""2026-11-21 00:25:12 UTC."""
SETTINGS = Settings({}, "sequential", ())
FIVE_MBIT = (94e6, 95e6, 96e6, 95e6, 94.5e6)
"""Repeats of a throughput."""


def new_run(store, trials=1, now=NOW, profile="p"):
    """Write a planned run; returns its id and its name."""
    planned = [PlannedTrial(n, n + 1, {"n": n}, (), {}, 1.0, 16.0) for n in range(trials)]
    return create_run(store, PlannedRun(profile, "", 7, SETTINGS, planned, ""), now)


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


def measured_run(
    store,
    repeats,
    *,
    profile="p",
    text="",
    now=NOW,
    tags=(),
    facts=None,
    settings=None,
    intervals=0,
):
    """Write a run that has ended, of one flow; returns its name.

    ``repeats`` are the throughputs of the repeats by the value of axis ``n``, None for a trial that
    failed. Each has ``intervals`` samples.
    """
    order = [(n, repeat, value) for n, ones in repeats.items()
             for repeat, value in enumerate(ones, 1)]  # fmt: skip
    planned = [
        PlannedTrial(place, repeat, {"n": n}, (), {}, 1.0, 16.0)
        for place, (n, repeat, _) in enumerate(order)
    ]
    settings = settings or Settings({"n": tuple(repeats)}, "sequential", ())
    run_id, name = create_run(store, PlannedRun(profile, "", 7, settings, planned, text), now, tags)
    with closing(Recorder(store, run_id)) as recorder, closing(Reader(store)) as reader:
        recorder.update_run(status="running", started_time=now, facts=facts or {})
        for trial, (_, _, value) in zip(reader.trials(run_id), order, strict=True):
            status = "ok" if value is not None else "failed"
            flow_id = add_flow(recorder, trial.id, status=status)
            if value is not None:
                recorder.add_figures(flow_id, figures(value))
                for number in range(intervals):
                    add_sample(recorder, flow_id, number / 10)
            recorder.update_trial(trial.id, status="running", started_time=now)
            recorder.update_trial(trial.id, status=status, finished_time=now + 1)
        statuses = {"ok" if value is not None else "failed" for _, _, value in order}
        recorder.update_run(
            status="failed" if "failed" in statuses else "ok", finished_time=now + 1
        )
    return name
