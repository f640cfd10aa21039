"""What people do with keys: the order and the headings of the help."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatch

# The first pattern that a name matches is its task; all other keys are those of the screen.
_SCREEN = "This screen"
_TASKS = {
    "Find, copy, save": ("app.filter", "app.sort", "app.copy", "app.save"),
    "Other screens": (
        "app.*", "*.history", "*.summary", "*.compare", "*.replay", "*.look", "plan.attach",
    ),
    "Start and stop": ("plan.run", *(f"live.{action}" for action in ("skip", "stop", "resume"))),
    "Time": (
        "live.freeze", "live.back", "live.on", "live.far_*", "live.slower", "live.faster",
        "live.before", "live.after", "live.follow",
    ),
    "Plots": (
        "live.zoom*", "live.values*", "live.higher", "live.lower", "live.metric", "live.cross*",
        "live.shape", "live.pick", "live.log", "live.smooth", "live.glyphs", "flows.*",
    ),
    "Lists and texts": ("table.*", "text.*", "*.focus*"),
}  # fmt: skip
ORDER = (
    _SCREEN, "Start and stop", "Time", "Plots", "Find, copy, save", "Lists and texts",
    "Other screens",
)  # fmt: skip


def task_of(key_id: str) -> str:
    """Return what the key of a name is for."""
    tasks = (task for task, names in _TASKS.items() if any(fnmatch(key_id, name) for name in names))
    return next(tasks, _SCREEN)


def by_task(keys: Iterable[tuple[str, str, str]]) -> dict[str, list[tuple[str, str]]]:
    """Return keys with what they do by task; each is given with its name first."""
    found: dict[str, list[tuple[str, str]]] = {task: [] for task in ORDER}
    for key_id, key, what in keys:
        found[task_of(key_id)].append((key, what))
    return {task: some for task, some in found.items() if some}
