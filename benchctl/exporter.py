"""The contract of an exporter: a run in a format of its own.

Plugins import it from `benchctl.api`. It is not defined there because commands that only read a
store do not load pydantic.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any


class ExportError(Exception):
    """A run cannot be written in a format, or nothing can on this machine.

    Args:
        message: why, in one line.
        hint: what to do about it, in one line; may be empty.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class ExportedRun(ABC):
    """A run as an exporter gets it: what docs/output-reference.md describes, and nothing else."""

    @property
    @abstractmethod
    def document(self) -> Mapping[str, Any]:
        """The run as ``benchctl export --format json`` writes it; computed on every access."""

    @abstractmethod
    def samples(self) -> Iterator[Mapping[str, Any]]:
        """Yield every sample of every attempt, trial by trial in the order of arrival.

        A sample has the keys of the event ``sample`` of ``--format jsonl`` (but for ``event``), and
        ``trial`` (its index), ``repeat``, ``point``, and ``started_time``: the Unix time of second
        0 of its flow, None if that never began. There can be millions: they are read one by one.
        """


class Exporter(ABC):
    """A format of files. Subclasses set the attributes and write `export`, without I/O."""

    api_version: int = 1
    """The version of `benchctl.api` that the plugin was written for; one that has none is of 1."""
    name: str
    about: str
    """What a file holds, in one line."""
    endings: tuple[str, ...]
    """The endings of its files, in lower case and without the dot: ``("toy", "toy.gz")``."""
    binary: bool = False
    """Whether `export` yields bytes. Text is written as UTF-8, its control characters escaped."""
    single_trial: bool = False
    """Whether a file holds one trial: then `ExportedRun` has no other, and ``summary`` is of it."""

    def check(self) -> None:
        """Find out before anything is measured whether files can be written on this machine.

        Raises ExportError, for example without a library. By default, they can.
        """
        return

    @abstractmethod
    def export(self, run: ExportedRun) -> Iterable[str | bytes]:
        """Return the pieces of a run's file, made one after another: equal runs give equal files.

        Raises ExportError if this run cannot be written in this format.
        """
