"""Prints figures of benches: each beside its bound, and whether the bound is met."""

from __future__ import annotations

import platform
from pathlib import Path


def machine() -> str:
    """Return the machine in one line: processor, cores, kernel, Python."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    cores = 0
    if cpuinfo.exists():
        lines = cpuinfo.read_text().splitlines()
        models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
        model, cores = (models or [model])[0], len(models)
    system = f"{platform.system()} {platform.release()}"
    return f"{model}, {cores} cores, {system}, Python {platform.python_version()}"


def head(title: str) -> None:
    """Print the heading of a table."""
    print(f"\n{title}\n{'figure':<58}{'measured':>14}{'bound':>14}  met")


def row(what: str, measured: float, bound: float, unit: str, *, at_least: bool = False) -> None:
    """Print one figure beside its bound; ``at_least`` if more is better."""
    met = measured >= bound if at_least else measured <= bound
    sign = "≥" if at_least else "≤"
    shown = f"{measured:.3g} {unit}".strip()
    limit = f"{sign} {bound:g} {unit}".strip()
    print(f"{what:<58}{shown:>14}{limit:>14}  {'yes' if met else 'NO'}")
