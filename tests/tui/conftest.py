"""Stores with runs for the screens, and profiles for the plan screen."""

import os
import signal
from pathlib import Path
from unittest.mock import Mock

import pytest
from tui.made_runs import MadeRun, three_runs
from waiting import DEADLINE_S

from benchctl.backends import installed
from benchctl.engine.checks.machine import HealthFinding
from benchctl.plugins import FILES_VARIABLE
from benchctl.store.locks import Liveness
from benchctl.store.manage import set_tags

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


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """Give no key up: on a busy machine a page may take longer than a person waits."""
    monkeypatch.setattr("benchctl.tui.typeahead.LONGEST_S", 2 * DEADLINE_S)


@pytest.fixture
def toy_profiles(tmp_path, monkeypatch):
    """Go to a directory with a profile for the toy backend, on a machine with one finding."""
    shipped = tmp_path / "shipped"
    for path in (tmp_path / "profiles/two-servers.toml", *(shipped / f"{n}.toml" for n in SHIPPED)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(PROFILE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(FILES_VARIABLE, str(TOY))
    for module in ("tui.screens.parts.editing", "profile.find"):
        monkeypatch.setattr(f"benchctl.{module}.packaged_profiles", lambda: shipped)
    finding = HealthFinding("clock", "note", "not synchronised", "timedatectl set-ntp true")
    monkeypatch.setattr("benchctl.tui.screens.parts.drawn.examine", lambda registry: [finding])
    # The backends are looked for once in a process.
    installed.cache_clear()
    yield tmp_path
    installed.cache_clear()


@pytest.fixture
def store(tmp_path):
    return tmp_path / "runs.sqlite"


@pytest.fixture
def alive(monkeypatch):
    monkeypatch.setattr(Liveness, "is_alive", lambda self, run_id: True)


@pytest.fixture
def live(store, alive):
    """Return a run whose second trial, of four streams, has run for 5 s."""
    made = MadeRun(store)
    made.begin(pid=4711)
    made.begin_trial()
    made.measure(20.0)
    made.end_trial()
    made.begin_trial()
    made.measure(5.0)
    yield made
    made.close()


@pytest.fixture
def three(store):
    """Return a store of three runs: two of a profile, the first its baseline, and another."""
    three_runs(store)
    set_tags(store, 1, ["baseline"])
    return store


@pytest.fixture
def ended_at_start(monkeypatch):
    """Ask this process to end while it starts a runner; returns what happened, in order."""
    told = []

    def end(*_):
        told.append("ended")

    def start(*_):
        told.append("held" if signal.getsignal(signal.SIGTERM) is not end else "not held")
        os.kill(os.getpid(), signal.SIGTERM)
        return Mock()

    monkeypatch.setattr("benchctl.engine.runner.launch._start", start)
    before = signal.signal(signal.SIGTERM, end)
    yield told
    signal.signal(signal.SIGTERM, before)
