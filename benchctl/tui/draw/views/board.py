"""What each host does while trials run side by side. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from benchctl.tui.model.runview import RunView


def doing_at(view: RunView, time: float) -> Mapping[str, str]:
    """Return the trial of each host at a moment, and its other end; empty if one runs at a time."""
    if view.run.settings.parallel is None:
        return {}
    found: dict[str, str] = {}
    for position in view.running_at(time):
        for flow in view.trials[position].flows.values():
            source, target = flow.flow.source, flow.flow.target
            found[source] = f"▶ {position + 1} to {target}"
            found[target] = f"▶ {position + 1} from {source}"
    return found
