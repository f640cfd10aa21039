"""Profiles for the plan screen: some of the user's, some bundled."""

from pathlib import Path

import pytest

from benchctl.backends import FILES_VARIABLE, installed
from benchctl.engine.health import Finding

TOY = Path(__file__).parents[1] / "cli" / "toy.py"
SHIPPED = ("a-first", "streams", "windows", "portfolio/a1-udp", "portfolio/a2-links")
PROFILE = """title = "A script that plays a tool"
description = "What a longer way costs, with one stream and with four."

[servers.paris]
host = "192.0.2.10"

[flows.main]
backend = "toy"
duration = "20s"

[axes]
plan = ["ok", "fail"]

[run]
repeats = 3
order = "shuffled"
seed = 42
"""


@pytest.fixture
def toy_profiles(tmp_path, monkeypatch):
    """Go to a directory with a profile for the toy backend, on a machine with one finding."""
    shipped = tmp_path / "shipped"
    for path in (tmp_path / "profiles/two-servers.toml", *(shipped / f"{n}.toml" for n in SHIPPED)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(PROFILE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(FILES_VARIABLE, str(TOY))
    monkeypatch.setattr("benchctl.tui.screens.plan.packaged_profiles", lambda: shipped)
    finding = Finding("clock", "note", "not synchronised", "timedatectl set-ntp true")
    monkeypatch.setattr("benchctl.tui.screens.drawn.examine", lambda registry: [finding])
    # The backends are looked for once in a process.
    installed.cache_clear()
    yield tmp_path
    installed.cache_clear()
