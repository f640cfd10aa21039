"""What every test may use, and what holds for all of them."""

import gc
import os
import signal
import sqlite3
import time
from functools import partial
from pathlib import Path

import needs
import pytest
from fork_server import ForkServer
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import none
from ports import lend_port

# The same examples on every run, and no limit of time: a busy machine is no defect. The first draw
# of a process reads every module for its constants, which counts as slow drawing.
_PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("benchctl", _PATIENT, derandomize=True)
# For make explore: other examples every time, and more of them.
settings.register_profile("explore", _PATIENT, derandomize=False, max_examples=1000)
settings.load_profile("benchctl")


TESTS = Path(__file__).parent

# Times are shown and exported in this machine's zone.
os.environ["TZ"] = "UTC"
time.tzset()

# Whoever runs the tests may prefer other units, stores and programs.
os.environ["BENCHCTL_SETTINGS"] = os.devnull
# Nobody has agreed to anything.
os.environ["XDG_STATE_HOME"] = os.devnull

# A program inherits what is ignored, and tests end programs by each of these: nohup ignores SIGHUP,
# and a script's & ignores SIGINT.
for _number, _handler in (
    (signal.SIGHUP, signal.SIG_DFL), (signal.SIGINT, signal.default_int_handler),
):  # fmt: skip
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _handler)


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="write the golden files anew")


@pytest.fixture(autouse=True)
def connections(monkeypatch):
    """The open connections to stores; all are closed by the end of the test that opened them."""
    opened = []

    class Connection(sqlite3.Connection):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            opened.append(self)

        def close(self):
            super().close()
            opened.remove(self)

    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Connection))
    yield opened
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


@pytest.fixture(scope="session")
def fork_server():
    with ForkServer() as server:
        yield server


@pytest.fixture
def port():
    return lend_port()


@pytest.fixture(scope="session")
def new_database():
    """Make an empty database of PostgreSQL with each call; returns its URL."""
    from postgres import running

    with running() as make:
        yield make


@pytest.fixture
def archive_url(new_database):
    """The URL of an archive that is empty."""
    from benchctl.archive.connection import open_archive
    from benchctl.archive.init import init

    found = new_database()
    with open_archive(found, any_version=True) as archive:
        init(archive, lambda _: False)
    return found


@pytest.fixture
def archive(archive_url):
    """An archive that is empty."""
    from benchctl.archive.connection import open_archive

    with open_archive(archive_url) as opened:
        yield opened


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    # What is imported and collected stays to the end: to look for garbage among it takes a third of
    # the time, while it is collected and in every test that makes many objects.
    gc.disable()
    try:
        return (yield)
    finally:
        # Hypothesis asks the collector who refers to its random numbers when it makes them.
        given(none())(lambda _: None)()
        gc.freeze()
        gc.enable()


def pytest_itemcollected(item):
    # The Makefile finds them by this word.
    if item.get_closest_marker("quiet") and "mark.quiet" not in item.path.read_text("utf-8"):
        raise pytest.UsageError(f"{item.path}: write pytest.mark.quiet in the file of {item.name}")


def pytest_runtest_setup(item):
    if reasons := needs.missing(item):
        pytest.skip("; ".join(reasons))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport():
    return needs.forbid_silent_skip((yield))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report():
    return needs.forbid_silent_skip((yield))


def pytest_terminal_summary(terminalreporter):
    needs.summarize(terminalreporter)
