"""Measures benchctl itself: ``python bench [NAME ...]``; every figure beside its bound."""

from __future__ import annotations

import importlib
import sys

import table

NAMES = (
    "startup",
    "plugins",
    "plan",
    "store",
    "answers",
    "schedule",
    "archive",
    "mesh",
    "pictures",
    "exchange",
    "packets",
    "recording",
    "quick",
    "runner",
    "simpleperf",
    "owamp",
    "floods",
    "truth",
    "lab",
    "hosts",
    "parallel",
    "fleet",
    "fleet_mesh",
    "stalls",
    "tui",
    "widgets",
)


def main() -> None:
    """Run the benches named, or all."""
    print(table.machine())
    for name in sys.argv[1:] or NAMES:
        importlib.import_module(name).main()


if __name__ == "__main__":
    main()
