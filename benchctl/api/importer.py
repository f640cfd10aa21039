"""The contract of an importer: files of measurements that are no backend's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from benchctl.api.recording import Recording
from benchctl.metrics import Metric


class Importer(ABC):
    """A kind of files. Subclasses set the attributes and write `recorded`, without I/O.

    The files of a backend's tool are read by `Backend.recorded`, with its parser.
    """

    api_version: int = 1
    """The version of `benchctl.api` that the plugin was written for; one that has none is of 1."""
    name: str
    about: str
    """What the files are, in one line."""
    metrics: tuple[Metric, ...] = ()
    """Those that it reads and that are not in METRICS, described."""
    headline: str = ""
    """The metric that its flows are known by in tables and plots, if it is one of these."""

    @abstractmethod
    def recorded(self, data: bytes) -> Sequence[Mapping[str, Recording]] | None:
        """Return the trials in a file, unpacked: the measurement of each flow by the flow's name.

        None if the file is of another kind, by its content. Raises ParserError if it is of this
        one and cannot be read.
        """
