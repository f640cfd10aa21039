"""What a metric is called and what it means, also one that only a plugin knows, or no one."""

from __future__ import annotations

from functools import cache

from benchctl.analysis.figures import describe
from benchctl.errors import MissingError
from benchctl.metrics import METRICS, Metric


@cache
def metric_of(backend: str, name: str) -> Metric:
    """Return what a metric of a backend means.

    A plugin is imported only for a name that is not common; where it is not installed any more,
    the metric is a distribution without a description.
    """
    if name in METRICS:
        return METRICS[name]
    from benchctl.backends import installed

    try:
        return describe(name, installed().load(backend).capabilities.metrics)
    except MissingError:
        return describe(name)


def title(name: str) -> str:
    """Return a metric's name for people: ``throughput_bps`` is throughput, its unit elsewhere."""
    for suffix in ("_bps", "_s", "_bytes", "_ratio"):
        name = name.removesuffix(suffix)
    return name.replace("_", " ").replace("rtt", "RTT").replace("tcp", "TCP")
