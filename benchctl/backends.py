"""The backends: those that are installed, and those in files that the user names."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from benchctl.plugins import PluginKind, PluginRegistry, find

if TYPE_CHECKING:
    from benchctl.api import Backend

AnyBackend: TypeAlias = "Backend[Any]"


class Registry(PluginRegistry["AnyBackend"]):
    """The available backends."""

    kind = PluginKind.BACKEND


@cache
def installed() -> Registry:
    """Return the registry of everything installed and named; the same one on every call."""
    return Registry(find(PluginKind.BACKEND))
