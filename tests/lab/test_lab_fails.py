"""A lab that cannot be built, that falls, or whose commands are killed: each is told, and ends."""

import ctypes
import errno
import os
import resource
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from lab.lab_support import topology
from waiting import wait_until

from benchctl.errors import LabError, LabKilledError
from benchctl.lab.build.devices import BuildError
from benchctl.lab.capability import Launcher, remedy
from benchctl.lab.keeper import _allow_files, _no_more_processes
from benchctl.lab.lab import Lab, _KeeperProcess
from benchctl.lab.topology.model import Emulator

pytestmark = pytest.mark.netns


@pytest.fixture
def reaps_nothing(monkeypatch):
    """Be the parent of orphans, as PID 1 of a container, and let them be until the end."""
    set_child_subreaper = 36  # prctl(2)
    libc = ctypes.CDLL(None)
    assert libc.prctl(set_child_subreaper, 1) == 0
    yield
    assert libc.prctl(set_child_subreaper, 0) == 0
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


@pytest.mark.usefixtures("reaps_nothing")
def test_a_lab_ends_although_nobody_reaps_the_orphans_of_its_commands(monkeypatch):
    monkeypatch.setattr("benchctl.lab.lab._END_TIMEOUT_S", 0.1)
    with Lab.build(topology("[hosts.a]")) as lab:
        argv = [*lab.nodes["a"].prefix, "sh", "-c", "echo ready; exec sleep 100"]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, start_new_session=True) as process:
            assert process.stdout.readline() == b"ready\n"
            os.killpg(process.pid, signal.SIGKILL)
    assert not Path(f"/proc/{lab._keeper._process.pid}").exists()


def test_a_service_that_ends_takes_the_lab_with_it(tmp_path):
    os.mkfifo(tmp_path / "end")
    text = f"""
[hosts.a]
services = [{{ command = ["sh", "-c", "cat {tmp_path}/end; exit 3"] }}]
"""
    with Lab.build(topology(text)) as lab:
        assert complaint(lab) is None
        (tmp_path / "end").write_text("enough")
        wait_until(lambda: complaint(lab))
        assert complaint(lab).endswith("ended with exit code 3: enough")


def complaint(lab):
    """Return what a lab says of its end, or None while it stands."""
    try:
        return lab.check()
    except LabError as error:
        return error.message


def test_a_lab_whose_keeper_was_killed_says_so():
    with Lab.build(topology("[hosts.a]")) as lab:
        assert complaint(lab) is None
        os.kill(lab.keeper_pid, signal.SIGKILL)
        assert complaint(lab) == "the lab failed: its keeper was killed"


def test_a_lab_whose_keeper_is_killed_while_it_is_built_may_be_built_again(monkeypatch):
    tell = _KeeperProcess.tell

    def kill_and_tell(keeper, message):
        children = Path(f"/proc/{keeper._process.pid}/task/{keeper._process.pid}/children")
        os.kill(int(wait_until(children.read_text)), signal.SIGKILL)
        tell(keeper, message)

    monkeypatch.setattr(_KeeperProcess, "tell", kill_and_tell)
    with pytest.raises(LabKilledError) as error:
        Lab.build(topology("[hosts.a]"))
    assert error.value.message == "the lab cannot be built: its keeper was killed"
    assert error.value.hint == ""


def test_a_lab_one_of_whose_emulators_was_killed_says_so():
    text = """
[hosts]
a = {}
b = {}
[links]
ab = { between = ["a", "b"], rate = "1Mbit" }
"""
    with Lab.build(topology(text), Emulator.USER) as lab:
        keeper = lab.keeper_pid
        children = Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split()
        os.kill(int(children[0]), signal.SIGKILL)
        wait_until(lambda: complaint(lab))
        assert complaint(lab).endswith("failed: the emulator of link ab ended")
        with pytest.raises(LabError):
            lab.counters("ab", "a")


def test_a_service_that_does_not_listen_is_told():
    text = """
[hosts.a]
services = [{ command = ["sh", "-c", "echo no luck >&2; exit 1"], ports = 80 }]
"""
    with pytest.raises(LabError, match="ended with exit code 1: no luck") as told:
        Lab.build(topology(text))
    assert told.value.hint == ""


def test_who_may_have_no_namespaces_is_told_what_to_do(monkeypatch):
    refused = Launcher(("sh", "-c", "echo unshare: no way >&2; exit 1", "sh"), user_namespace=True)
    monkeypatch.setattr("benchctl.lab.capability.launcher", lambda: refused)
    with pytest.raises(LabError, match="cannot be built: unshare: no way") as told:
        Lab.build(topology("[hosts.a]"))
    assert told.value.hint == remedy()


def test_a_program_that_a_lab_needs_and_that_is_missing_is_named_with_its_package(monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(LabError, match="no program unshare in the PATH") as told:
        Lab.build(topology("[hosts.a]"))
    assert told.value.hint == "install util-linux"


def test_a_service_that_is_not_installed_is_told():
    text = '[hosts.a]\nservices = [{ command = ["no-such-server"] }]'
    with pytest.raises(LabError, match="a: no-such-server: no such program"):
        Lab.build(topology(text))


def test_a_setting_that_the_kernel_does_not_know_is_told():
    with pytest.raises(LabError, match=r"sysctl net\.ipv4\.tcp_wish = 1: No such file"):
        Lab.build(topology("[hosts.a]\nsysctl = { tcp_wish = 1 }"))


def test_a_lab_that_needs_more_files_than_there_may_be_says_how_many():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    said = rf"needs {hard + 1:,} open files, and the limit is {hard:,}"
    with pytest.raises(BuildError, match=said):
        _allow_files(hard + 1)
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (soft, hard)


def test_a_system_that_starts_no_more_processes_names_the_limit_it_met():
    soft, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    full = _no_more_processes(OSError(errno.EAGAIN, ""), 300, 400)
    assert "needs 400 processes for its links, and the system starts no more than 300" in full
    assert "in all" in full
    assert f"{soft:,} of this user (ulimit -u)" in full or soft == resource.RLIM_INFINITY
    used_up = _no_more_processes(OSError(errno.ENOMEM, ""), 300, 400)
    assert used_up.endswith("no more than 300: the memory is used up: make the lab smaller")
