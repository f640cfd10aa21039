"""What a run is, in two lines."""

from __future__ import annotations

from benchctl.run.record import Run
from benchctl.units import format_count, format_time


def heading(run: Run) -> tuple[str, str]:
    """Return the lines above a run's table: its name and profile, its time and order."""
    title = f": {run.title}" if run.title else ""
    started = format_time(run.started_time) if run.started_time is not None else "-"
    how = f"imported from {run.origin}" if run.origin else f"{run.settings.order}, seed {run.seed}"
    return (
        f"run {run.name}  {run.profile}{title}",
        f"started {started}  {run.status}  {format_count(run.trials, 'trial')}, {how}",
    )
