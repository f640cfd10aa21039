"""What each version of iperf3 can do."""

from __future__ import annotations

import re

from benchctl.api import Tool

VERSION = re.compile(r"^iperf (\d{1,4})\.(\d{1,4})(\S*)", re.MULTILINE)

# The first version that can do, or does, each of these (see `faults`).
_SINCE = {
    "prompt-start": (3, 10),
    "debug-levels": (3, 12),
    "omitted-losses": (3, 14),
    "late-end": (3, 16),
    "whole-blocks": (3, 16),
    "json-stream": (3, 17),
    "long-omit": (3, 18),
    "mptcp": (3, 19),
    "large-mss": (3, 21),
}


def tool_of(text: str) -> Tool:
    """Return the version that a text begins with, and what it implies; none if it has none."""
    match = VERSION.search(text)
    if match is None:
        return Tool("unknown")
    version = (int(match[1]), int(match[2]))
    features = frozenset(name for name, since in _SINCE.items() if version >= since)
    return Tool(f"{match[1]}.{match[2]}{match[3]}", features)
