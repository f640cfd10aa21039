"""Checks what this machine allows a lab to do, and gives the remedy for what is missing.

A lab needs network, mount and PID namespaces: those of root, or those inside a user namespace of an
ordinary user. Everything else exists in every kernel that has these, or has a substitute.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchctl.errors import LabError
from benchctl.lab.build.devices import program_path

# linux/capability.h
_CAP_NET_ADMIN = 12
_CAP_SYS_ADMIN = 21

_PROC_SYS = Path("/proc/sys")
PROGRAMS = {
    "unshare": "util-linux", "nsenter": "util-linux", "setpriv": "util-linux",
    "ip": "iproute2", "tc": "iproute2",
}  # fmt: skip
"""The programs that a lab needs, and the packages that have them."""

# Settings that forbid user namespaces on some systems: the value that forbids, and the systems.
_FORBIDDING = {
    "kernel/unprivileged_userns_clone": ("0", "kernel.unprivileged_userns_clone=1"),
    "kernel/apparmor_restrict_unprivileged_userns": (
        "1", "kernel.apparmor_restrict_unprivileged_userns=0",
    ),
    "user/max_user_namespaces": ("0", "user.max_user_namespaces=15000"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Ability:
    """One capability of a machine: ``text`` is the result, ``remedy`` the help."""

    name: str
    there: bool
    text: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Launcher:
    """How to start a process in its own namespaces: the words before its command."""

    argv: tuple[str, ...]
    user_namespace: bool


def launcher() -> Launcher:
    """Return how a lab's processes are started by this user."""
    user_namespace = not _is_root()
    user = ("--user", "--map-root-user") if user_namespace else ()
    # The first child is init of a PID namespace, and dies with its parent: then the kernel kills
    # every process in it.
    return Launcher(
        ("unshare", *user, "--mount", "--pid", "--fork", "--kill-child", "--"), user_namespace
    )


def examine() -> list[Ability]:
    """Return what this machine lets a lab do."""
    if why_not := _why_not():
        return [why_not]
    return list(_examine())


def fault() -> LabError | None:
    """Return why no lab can be built here; None if one can, as far as this is quickly seen."""
    if why_not := _why_not():
        return LabError(f"the lab cannot be built: {why_not.text}", why_not.remedy)
    return None


def remedy() -> str:
    """Return the remedy if this user can't create namespaces; empty if none is known."""
    for path, (value, setting) in _FORBIDDING.items():
        file = _PROC_SYS / path
        if file.exists() and file.read_text().strip() == value:
            return f"sysctl {setting}, or run as root"
    if not Path("/proc/self/ns/user").exists():
        return "this kernel has no user namespaces; run as root"
    return "run as root; in a container, start it with --privileged"


def _why_not() -> Ability | None:
    if sys.platform != "linux":
        return Ability("lab", False, "it needs Linux", "run benchctl in a Linux virtual machine")
    for program, package in PROGRAMS.items():
        if not program_path(program):
            return Ability("lab", False, f"no program {program} in the PATH", f"install {package}")
    result = _inside("unshare", "--version")  # which is there
    if result.returncode:
        text = f"cannot create namespaces {_whose()}: {result.stderr.strip()}"
        return Ability("lab", False, text, remedy())
    return None


def _examine() -> Iterator[Ability]:
    yield Ability("lab", True, f"namespaces {_whose()}")
    result = _inside(sys.executable, "-P", "-m", __name__)
    result.check_returncode()
    for found in json.loads(result.stdout):
        yield Ability(**found)


def _inside(*command: str) -> subprocess.CompletedProcess[str]:
    """Run a command in namespaces of its own, as those of a lab."""
    argv = (*launcher().argv, "unshare", "--net", "--", *command)
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def _whose() -> str:
    return "as an ordinary user, in a user namespace" if launcher().user_namespace else "as root"


def _is_root() -> bool:
    if os.geteuid() != 0:
        return False
    lines = Path("/proc/self/status").read_text().splitlines()
    effective = next(int(line.split()[1], 16) for line in lines if line.startswith("CapEff"))
    return all(effective >> bit & 1 for bit in (_CAP_NET_ADMIN, _CAP_SYS_ADMIN))


def _look_inside() -> list[dict[str, object]]:
    """Return the capabilities of this process, which is in its own namespaces."""
    from benchctl.lab.build.namespaces import IPV6, mount_view
    from benchctl.lab.emulate.emulator import hurry
    from benchctl.lab.emulate.kernel import refusal, unpunctual
    from benchctl.lab.emulate.ring import Ring

    Ring("lo", 1500)
    refused = refusal()
    reason = refused or unpunctual()
    return [
        {
            "name": "lab emulator",
            "there": True,
            "text": f"benchctl's own: packet sockets work, {'with' if hurry() else 'without'} "
            "real-time priority",
        },
        {
            "name": "lab kernel emulator",
            "there": not reason,
            "text": reason or "netem and htb passed the self-test",
            "remedy": "benchctl's own emulator is used; for the kernel's, load sch_netem, "
            "sch_htb, sch_ingress, cls_matchall and act_mirred"
            if refused
            else 'benchctl\'s own emulator is used, unless `emulator = "kernel"` is set'
            if reason
            else "",
        },
        _view(mount_view()),
        {
            "name": "lab IPv6",
            "there": IPV6.exists(),
            "text": "there" if IPV6.exists() else "this kernel has no IPv6",
            "remedy": ""
            if IPV6.exists()
            else "labs with ipv6 = true need it; boot without ipv6.disable=1",
        },
    ]


def _view(refused: str) -> dict[str, object]:
    if not refused:
        return {
            "name": "lab processes",
            "there": True,
            "text": "a host sees the lab's processes and its own devices",
        }
    return {
        "name": "lab processes",
        "there": False,
        "text": f"a host sees this machine's processes or devices ({refused})",
        "remedy": "labs work, but pgrep in a lab finds processes of this machine; in a container, "
        "start it with --security-opt systempaths=unconfined",
    }


if __name__ == "__main__":
    print(json.dumps(_look_inside()))
