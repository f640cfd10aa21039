"""Where the programs of tools are: in the PATH, or where the settings say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from benchctl.settings import settings


def located(argv: Sequence[str]) -> tuple[str, ...]:
    """Return a command with the path that the settings give for its program, if any."""
    return (_paths().get(argv[0], argv[0]), *argv[1:])


@cache  # a run keeps those that it began with
def _paths() -> Mapping[str, str]:
    paths: Mapping[str, str] = settings()["programs"]
    return paths
