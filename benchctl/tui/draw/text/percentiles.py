"""The figures of samples in order of value, as text. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from benchctl.analysis.flow.counted import ValueHistogram
from benchctl.analysis.statistics import quantile
from benchctl.units import format_value

PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
_FIGURES: Mapping[str, Callable[[ValueHistogram], float]] = {
    "mean": lambda samples: samples.mean,
    **{
        name: lambda samples, share=share: quantile(samples, share)  # type: ignore[misc]
        for name, share in PERCENTILES.items()
    },
    "min": lambda samples: samples[0],
    "max": lambda samples: samples[-1],
}
HEADS = (*_FIGURES, "samples")
"""What there is of each line, the most important first."""


def sample_figures(metric: str, samples: ValueHistogram) -> list[str]:
    """Return the figures of at least one sample, in the order of `HEADS`."""
    figures = (format_value(metric, figure(samples)) for figure in _FIGURES.values())
    return [*figures, f"{len(samples):,}"]


def percentiles(metric: str, samples: ValueHistogram) -> Sequence[str]:
    """Return ``mean 20.4 ms  p50 20.1 ms  p95 24.3 ms  p99 30.2 ms``, and it without the mean."""
    texts = [
        f"{name} {format_value(metric, quantile(samples, share))}"
        for name, share in PERCENTILES.items()
    ]
    mean = f"mean {format_value(metric, samples.mean)}"
    return "  ".join([mean, *texts]), "  ".join(texts)
