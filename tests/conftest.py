"""What every test may use: marks that know which real programs and kernels are here.

A test that needs a real program or namespaces is skipped, with the reason, on a machine that
lacks them; with ``CI`` set it fails instead, so that CI never passes by skipping.
"""

import os
import shutil
import sqlite3
import subprocess
from functools import partial
from pathlib import Path

import pytest
from hypothesis import settings

# The same examples on every run, and no limit of time: a busy machine is no defect.
settings.register_profile("benchctl", deadline=None, derandomize=True)
settings.load_profile("benchctl")


TESTS = Path(__file__).parent


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="write the golden files anew")


@pytest.fixture(autouse=True)
def _connections(monkeypatch):
    """Every connection to a store is closed by the end of the test that opened it."""
    opened = []

    class Connection(sqlite3.Connection):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            opened.append(self)

        def close(self):
            super().close()
            opened.remove(self)

    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Connection))
    yield
    assert not opened


@pytest.fixture
def golden(request):
    """Compare a text with a file under tests/, byte for byte."""

    def compare(name, text):
        path = TESTS / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8")

    return compare


def _refused_namespaces() -> str:
    """Return why network namespaces cannot be made here, or an empty string."""
    if not shutil.which("unshare"):
        return "no unshare program (util-linux)"
    result = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--net", "--mount", "true"],
        capture_output=True,
        text=True,
        check=False,
    )
    return result.stderr.strip() if result.returncode else ""


def pytest_runtest_setup(item):
    reasons = [
        f"needs the program {name}"
        for mark in item.iter_markers("tool")
        for name in mark.args
        if not shutil.which(name)
    ]
    if item.get_closest_marker("netns") and (refused := _refused_namespaces()):
        reasons.append(f"needs network namespaces: {refused}")
    if reasons:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("; ".join(reasons))
