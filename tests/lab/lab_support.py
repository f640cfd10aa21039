"""Shared by the tests of real labs: topologies from text, and checks for remaining processes."""

import os
import select
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from waiting import COMMAND_S, wait_until

from benchctl.lab.emulate.kernel import unpunctual
from benchctl.lab.topology.model import Emulator
from benchctl.lab.topology.topology import build_topology
from benchctl.lab.verify.verify import verify
from benchctl.toml.source import parse_toml

OWNER = Path(__file__).with_name("lab_owner.py")
ROOT = Path(__file__).parents[2]
IMPORTED = ("benchctl", "plugins", "profiles", "tests")
LABS = ROOT / "profiles/labs"
NOBODY = 65534
# A kernel of its own has netem; benchctl's own emulator works everywhere.
_KERNEL = [Emulator.KERNEL] if os.environ.get("BENCHCTL_GUEST") and not unpunctual() else []
EMULATORS = [Emulator.USER, *_KERNEL]
"""Those that keep their promises here, to which the same tests apply."""


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


def ordinary_user():
    """Return the words before a Python script that run it as a user who is not root.

    Skips the test where no such user can be given this interpreter.
    """
    if os.geteuid():
        return [sys.executable]
    # With whole paths: a test may plant programs of these names.
    setpriv = shutil.which("setpriv")
    argv = [
        *_shown_to_all(sys.prefix, sys.base_prefix, *map(ROOT.joinpath, IMPORTED)),
        *(setpriv, f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"),
        *("env", f"PYTHONPATH={os.pathsep.join(filter(None, sys.path))}"),
        *("PYTHONDONTWRITEBYTECODE=1", sys.executable),
    ]
    check = ["-c", "import benchctl.lab.lab"]
    result = subprocess.run([*argv, *check], capture_output=True, text=True, check=False)
    if result.returncode:
        pytest.skip(f"needs mounts, to show Python to an ordinary user: {result.stderr.strip()}")
    return argv


def _shown_to_all(*directories):
    """Return the words that run a command where everybody may enter these directories.

    Where others may not enter, as into root's home, a mount namespace of the command's own has
    nothing but what of the directories lies there.
    """
    paths = [Path(directory).resolve() for directory in directories]
    closed = {
        path: next((up for up in reversed(path.parents) if not up.stat().st_mode & 0o001), None)
        for path in paths
    }
    hidden = [path for path in closed if closed[path]]
    if not hidden:
        return []
    places = [os.pathsep.join(map(str, group)) for group in ({*closed.values()} - {None}, hidden)]
    return [shutil.which("unshare"), "--mount", "/bin/sh", "-ec", SHOW, "sh", *places]


SHOW = """
closed=$1 hidden=$2 IFS=:
shift 2
umask 022
kept=$(TMPDIR= mktemp -d)
mount -t tmpfs none "$kept"
for path in $hidden; do mkdir -p "$kept$path"; mount --bind "$path" "$kept$path"; done
for path in $closed; do mount -t tmpfs -o mode=755 none "$path"; done
for path in $hidden; do mkdir -p "$path"; mount --bind "$kept$path" "$path"; done
umount --recursive "$kept"
rmdir "$kept"
exec "$@"
"""


@contextmanager
def owner(prefix, mark, *arguments, emulator="auto"):
    """Run `lab_owner` with a mark in its environment, and kill it at the end."""
    with subprocess.Popen(
        [*prefix, str(OWNER), emulator, *arguments],
        env={**os.environ, "BENCHCTL_MARK": mark},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def verified(lab, links):
    """Measure links until every promise is shown: a sender that is held up fills no queue."""

    def look():
        looks = verify(lab, links)
        return None if any(one.unverified for one in looks) else looks

    return wait_until(look)


def read_up(process):
    """Wait until an owner says that its lab is up; returns the keeper's process number."""
    assert select.select([process.stdout], [], [], COMMAND_S)[0]
    word, pid = process.stdout.readline().split()
    assert word == "up"
    return int(pid)
