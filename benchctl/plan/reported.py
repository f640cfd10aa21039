"""Figures that others reported for the same experiment, shown beside the measured ones.

They do not affect the exit code. As with expectations, the names they use must exist.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from benchctl.backends import AnyBackend
from benchctl.metrics import OF_TRIALS
from benchctl.plan.expectations import Names, read_figure
from benchctl.plan.matrix import Matrix
from benchctl.profile.load import Document
from benchctl.run.planned import Reported
from benchctl.toml.source import Key


def read_reported(
    document: Document, matrix: Matrix, backends: Mapping[str, Collection[AnyBackend]]
) -> tuple[Reported, ...]:
    """Return the reported figures of a profile; ``backends`` maps flows to theirs.

    Raises ProfileError.
    """
    names = Names(document, matrix, backends)
    reported = []
    for index, table in enumerate(document.model.reported):
        key: Key = ("reported", index)
        names.check_place(key, table.flow, table.where)
        of_trials = OF_TRIALS if table.flow is None else ()
        metrics = {}
        for metric, written in table.figures.items():
            names.check_metric((*key, metric), table.flow, metric, of_trials)
            metrics[metric] = read_figure(document, metric, written, (*key, metric))
        reported.append(Reported(table.flow, table.direction, table.where, metrics))
    return tuple(reported)
