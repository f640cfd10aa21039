"""Holds the figures of a flow against the laws, and says what becomes of those that break one.

A figure that breaks a law (`benchctl.analysis.flow.laws`) is marked
(`benchctl.run.record.Figure.broken`). If another source has the figure, and with it no law is
broken, that one takes its place: the samples, or the other end. If none has, it stays as the
tool's, and counts nowhere.

**To feed the laws.** A backend reports what its tool said, in `benchctl.metrics.Summary`. What only
the backend can know, such as a fault of one version of its tool, it says there, too: ``broken``
names the figure and the reason, and ``instead`` what the tool's other figures give for it. Both end
in the same mark. Another source of a figure is one more entry of ``others``: its name, which
becomes the figure's origin, and its figures. What a topology or a counter bounds is a field of
`benchctl.analysis.flow.laws.PathBounds`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from benchctl.analysis.flow.laws import LATE_RATIO, LATE_S, LAWS, PACKETS, Ledger, Terms
from benchctl.metrics import Breach
from benchctl.run.record import Figure, Figures
from benchctl.units import format_duration


def held(
    figures: Figures, terms: Terms, others: Sequence[tuple[str, Figures]] = ()
) -> dict[tuple[str, str], Figure]:
    """Return the figures of a flow, those marked that break a law, with their resolution.

    ``others`` are other sources of its figures, each with its name, in the order of preference.
    """
    first = {key: _resolved(key, figure, figures, terms) for key, figure in figures.items()}
    known, samples = dict(first), dict(others).get("samples", {})
    broken = _broken(known, samples, terms)
    for origin, source in others if broken else ():
        better = {
            key: replace(
                _resolved(key, source[key], figures, terms),
                origin=origin, broken=broken[key], rejected=_reported(figures[key]),
            )
            for key in broken
            if key in source and source[key].value != known[key].value
        }  # fmt: skip
        still = _broken({**known, **better}, samples, terms)
        known.update({key: figure for key, figure in better.items() if key not in still})
        broken = _broken(known, samples, terms)
    while broken:  # one that is marked here may have hidden another
        known.update({key: _marked(first[key], how) for key, how in broken.items()})
        broken = _broken(known, samples, terms)
    return {**known, **_unaccounted(known)}


def _marked(figure: Figure, how: Breach) -> Figure:
    """Return a figure as the tool reported it, with the law that it breaks: it does not count."""
    return replace(figure, value=_reported(figure), rejected=None, broken=how)


def _reported(figure: Figure) -> float:
    """Return the value that the tool reported, whatever takes its place."""
    return figure.value if figure.rejected is None else figure.rejected


def _resolved(key: tuple[str, str], figure: Figure, figures: Figures, terms: Terms) -> Figure:
    """Return a figure with the step in which it is known: one datagram, or one packet lost."""
    direction, metric = key
    step = None
    sent = figures.get((direction, "packets_sent"))
    measured_s = terms.lasted_s or terms.duration_s
    if metric in ("throughput_bps", "sent_bps") and terms.datagram_bytes and measured_s:
        step = 8 * terms.datagram_bytes / measured_s
    elif metric == "loss_ratio" and sent is not None and sent.value > 0:
        step = 1 / sent.value
    if step is None or figure.resolution is not None:
        return figure
    return replace(figure, resolution=step)


def _unaccounted(figures: Figures) -> dict[tuple[str, str], Figure]:
    """Return what was sent, and neither received nor counted as lost."""
    found = {}
    for direction in dict.fromkeys(direction for direction, _ in figures):
        own = [figures.get((direction, name)) for name in PACKETS[:3]]
        if all(figure is not None and figure.counts for figure in own):
            sent, received, lost = (figure.value for figure in own if figure is not None)
            if sent > received + lost:
                missing = Figure(sent - received - lost, "samples")
                found[direction, "packets_unaccounted"] = missing
    return found


def _broken(figures: Figures, samples: Figures, terms: Terms) -> dict[tuple[str, str], Breach]:
    """Return the laws that figures break, by direction and metric; the first of each."""
    found: dict[tuple[str, str], Breach] = {}
    for direction in dict.fromkeys(direction for direction, _ in figures):
        own, ours = (
            {
                metric: figure
                for (of, metric), figure in some.items()
                if of == direction and figure.counts
            }
            for some in (figures, samples)
        )
        ledger = Ledger(direction, own, ours, terms)
        for law in LAWS:
            for metrics, words in law.breaks(ledger):
                for metric in own.keys() & {*metrics}:
                    found.setdefault((direction, metric), Breach(law.name, words))
    return found


def late_words(terms: Terms) -> str:
    """Return what to say of a flow that lasted much longer than it was asked to; else nothing."""
    asked_s, lasted_s = terms.duration_s, terms.lasted_s
    if asked_s is None or lasted_s is None or lasted_s <= asked_s * (1 + LATE_RATIO) + LATE_S:
        return ""
    return f"asked for {format_duration(asked_s)}, lasted {format_duration(lasted_s)}"


def sentences(figures: Figures) -> Iterator[str]:
    """Yield what is to be said of the broken figures of a flow: one sentence for each law broken.

    ``packets received (send) cannot be: received 834 of 739 sent; ...``.
    """
    groups: dict[tuple[str, Breach], list[tuple[str, Figure]]] = {}
    for (direction, metric), figure in figures.items():
        if figure.broken is not None:
            groups.setdefault((direction, figure.broken), []).append((metric, figure))
    for (direction, broken), own in groups.items():
        names = ", ".join(metric for metric, _ in own)
        placed = [
            f"{metric} {figure.value:.6g} of the {figure.origin}, not {figure.rejected:.6g}"
            for metric, figure in own
            if figure.rejected is not None
        ]
        instead = f"; in its place: {', '.join(placed)}" if placed else ""
        yield f"{names} ({direction}) cannot be: {broken.words}{instead}"
