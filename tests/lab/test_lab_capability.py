"""What this machine lets a lab do, and what helps where it does not."""

import os
import shutil
from pathlib import Path

import pytest

from benchctl.lab import capability


def test_an_ordinary_user_gets_a_user_namespace(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    launcher = capability.launcher()
    assert launcher.user_namespace
    assert launcher.argv[:3] == ("unshare", "--user", "--map-root-user")


def test_a_program_that_is_missing_is_named_with_its_package(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name, path="": None if name == "ip" else name)
    assert capability.examine() == [
        capability.Ability("lab", False, "no program ip in the PATH", "install iproute2")
    ]
    fault = capability.fault()
    assert fault.message == "the lab cannot be built: no program ip in the PATH"
    assert fault.hint == "install iproute2"


@pytest.mark.netns
def test_who_may_have_no_namespaces_is_told_so_before_a_lab_is_built(monkeypatch):
    assert capability.fault() is None
    refused = capability.Launcher(("sh", "-c", "echo no way >&2; exit 1", "sh"), True)
    monkeypatch.setattr(capability, "launcher", lambda: refused)
    fault = capability.fault()
    assert fault.message == (
        "the lab cannot be built: cannot create namespaces as an ordinary user, in a user"
        " namespace: no way"
    )
    assert fault.hint == capability.remedy()


@pytest.mark.parametrize(
    ("file", "text", "remedy"),
    [
        ("kernel/unprivileged_userns_clone", "0\n", "sysctl kernel.unprivileged_userns_clone=1"),
        ("user/max_user_namespaces", "0\n", "sysctl user.max_user_namespaces=15000"),
        ("kernel/apparmor_restrict_unprivileged_userns", "0\n", "run as root; in a container"),
    ],
)
def test_the_setting_that_forbids_is_named(file, text, remedy, monkeypatch, tmp_path):
    path = tmp_path / file
    path.parent.mkdir()
    path.write_text(text)
    monkeypatch.setattr(capability, "_PROC_SYS", tmp_path)
    assert capability.remedy().startswith(remedy)


def test_other_systems_have_no_labs(monkeypatch):
    monkeypatch.setattr("sys.platform", "darwin")
    assert [ability.there for ability in capability.examine()] == [False]


@pytest.mark.netns
def test_where_namespaces_work_links_can_be_emulated():
    found = {ability.name: ability for ability in capability.examine()}
    assert found["lab"].there
    assert found["lab emulator"].there
    kernel = found["lab kernel emulator"]
    assert kernel.there or kernel.remedy


@pytest.mark.netns
def test_a_user_without_sbin_in_the_path_has_the_same_labs(monkeypatch, tmp_path):
    before = capability.examine()
    for name in ("unshare", "nsenter", "setpriv"):
        (tmp_path / name).symlink_to(shutil.which(name))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert capability.examine() == before


@pytest.mark.netns
def test_looking_changes_nothing_on_this_machine():
    before = Path("/proc/self/mountinfo").read_text()
    capability.examine()
    assert Path("/proc/self/mountinfo").read_text() == before
