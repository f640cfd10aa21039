"""However the owner of a lab ends, nothing of the lab outlives it."""

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

import pytest
from lab.lab_support import LABS, ordinary_user, owner, processes_with, read_up
from waiting import wait_until

pytestmark = pytest.mark.netns

PORTFOLIO = str(LABS / "portfolio.toml")
MOMENTS = 5


def gone(mark, *others):
    """Wait until no process has the mark but these."""
    wait_until(
        lambda: set(processes_with(mark)) <= {*others},
        lambda: processes_with(mark),
    )


@pytest.fixture
def mark():
    return f"lab-{uuid.uuid4()}"


@pytest.fixture(params=["as we are", "as an ordinary user"])
def python(request):
    if request.param == "as we are":
        return [sys.executable]
    return ordinary_user()


@pytest.fixture
def scratch(monkeypatch):
    """The directory of temporary files for labs, and for nobody else."""
    directory = Path(tempfile.mkdtemp())  # not under tmp_path, which only its owner may enter
    directory.chmod(0o777)
    monkeypatch.setenv("TMPDIR", str(directory))
    yield directory
    shutil.rmtree(directory)


def traces(scratch):
    """Return what a lab could leave on this machine beside processes."""
    devices = subprocess.run(["ip", "-br", "link"], capture_output=True, text=True, check=True)
    named = Path("/run/netns")
    return (
        devices.stdout,
        Path("/proc/self/mountinfo").read_text(),
        sorted(named.iterdir()) if named.exists() else [],
        sorted(scratch.iterdir()),
    )


def test_a_lab_that_is_closed_is_gone(python, mark, scratch):
    before = traces(scratch)
    with owner(python, mark, PORTFOLIO, emulator="user") as process:
        read_up(process)
        assert len(processes_with(mark)) > 8
        process.stdin.close()
        assert process.wait() == 0
        assert processes_with(mark) == {}
    assert traces(scratch) == before


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGHUP", "SIGSEGV"])
def test_a_lab_goes_with_its_owner_whatever_ends_it(name, mark, scratch):
    before = traces(scratch)
    with owner([sys.executable], mark, PORTFOLIO) as process:
        read_up(process)
        process.send_signal(signal.Signals[name])
        process.wait()
        gone(mark)
    assert traces(scratch) == before


def test_a_lab_goes_with_its_owner_killed_at_any_moment(python, mark, scratch):
    """Before it stands, while it is built, while it stands: at moments spread over all of it."""
    before = traces(scratch)
    begun_s = time.monotonic()
    with owner(python, mark, PORTFOLIO) as process:
        read_up(process)
    takes_s = time.monotonic() - begun_s
    moments = random.Random(20261121)
    for n in range(MOMENTS):
        with owner(python, mark, PORTFOLIO) as process:
            try:
                process.wait((n + moments.random()) / MOMENTS * 1.2 * takes_s)
            except subprocess.TimeoutExpired:
                process.kill()
            process.wait()
            gone(mark)
    assert traces(scratch) == before


def test_a_lab_goes_when_its_keeper_is_killed(mark):
    with owner([sys.executable], mark, PORTFOLIO) as process:
        os.kill(read_up(process), signal.SIGKILL)
        gone(mark, process.pid)


def test_a_lab_goes_when_one_of_its_emulators_is_killed(mark):
    with owner([sys.executable], mark, PORTFOLIO, emulator="user") as process:
        keeper = read_up(process)
        children = Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split()
        os.kill(int(children[0]), signal.SIGKILL)
        gone(mark, process.pid)


@pytest.mark.tool("ping")
def test_an_ordinary_user_has_labs_too(mark):
    with owner(ordinary_user(), mark, PORTFOLIO, "h1", "h4") as process:
        output, _ = process.communicate()
    assert process.returncode == 0
    assert "1 received" in output
