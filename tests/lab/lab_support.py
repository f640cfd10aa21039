"""What the tests of real labs share: topologies from text, and who is still there."""

import os
import select
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

from benchctl.lab.topology import build_topology
from benchctl.profile.source import parse_toml

OWNER = Path(__file__).with_name("lab_owner.py")
LABS = Path(__file__).parents[2] / "profiles/labs"
NOBODY = 65534


def topology(text):
    return build_topology(parse_toml(text, Path("lab.toml")), {})


def processes_with(mark):
    """Return the command lines of all processes whose environment has a mark."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if mark.encode() in (entry / "environ").read_bytes():
                found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ")
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
    return found


def wait_until(condition, timeout_s=10.0):
    """Wait for a condition that only the kernel can tell us of; returns whether it came."""
    end_s = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > end_s:
            return False
        time.sleep(0.01)
    return True


def ordinary_user():
    """Return the words before a Python script that run it as a user who is not root."""
    if os.geteuid():
        return [sys.executable]
    path = os.pathsep.join(map(str, filter(None, sys.path)))
    become = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    # Root's own interpreter may be in a place that others may not enter.
    for python in (sys.executable, shutil.which(version, path="/usr/bin:/usr/local/bin")):
        argv = [
            *become,
            "env",
            f"PYTHONPATH={path}",
            "PYTHONDONTWRITEBYTECODE=1",
            python or "false",
        ]
        check = [
            *argv,
            "-c",
            "import os, sys, benchctl.lab.lab; os.execv(sys.executable, ['true'])",
        ]
        if subprocess.run(check, capture_output=True, check=False).returncode == 0:
            return argv
    return []


@contextmanager
def owner(prefix, mark, *arguments):
    """Run `lab_owner` with a mark in its environment, and kill it at the end."""
    with subprocess.Popen(
        [*prefix, str(OWNER), *arguments],
        env={**os.environ, "BENCHCTL_MARK": mark},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def read_up(process, timeout_s=20.0):
    """Wait until an owner says that its lab is up; returns the keeper's process number."""
    assert select.select([process.stdout], [], [], timeout_s)[0]
    word, pid = process.stdout.readline().split()
    assert word == "up"
    return int(pid)
