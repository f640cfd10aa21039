"""What tests of both parsers ask of events."""

from collections import Counter

from benchctl.api import Failure, Sample, TracedRoute, Warn


def samples(events, metric):
    """Return the samples that have a metric."""
    return [one for one in events if isinstance(one, Sample) and metric in one.metrics]


def totals(events, stream=None):
    """Return the sums of the flow's counts, or of those of the hop that a stream is of."""
    sums = Counter()
    for one in events:
        if isinstance(one, Sample) and stream in (None, one.stream):
            wanted = "packets_" if stream is None else ("hop_probes", "hop_unanswered")
            sums.update({k: v for k, v in one.metrics.items() if k.startswith(wanted)})
    return dict(sums)


def route(events):
    """Return the hops of the one route among events."""
    (one,) = (one for one in events if isinstance(one, TracedRoute))
    return [dict(hop) for hop in one.hops]


def warnings(events):
    return [one.message for one in events if isinstance(one, Warn)]


def failure(events):
    """Return why the flow failed: the first reason counts."""
    return next(one for one in events if isinstance(one, Failure))
