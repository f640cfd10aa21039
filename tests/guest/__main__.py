"""Runs a command on another kernel: ``python tests/guest 6.12 -- COMMAND``.

Boots one of Debian's own kernels, which have netem, in a virtual machine (QEMU) that has no
network, with this checkout at /benchctl, and runs a shell command there as root. The guest's clock
counts the instructions that it executes, so its timing does not depend on the load of this machine.
With ``--host-clock`` it has two processors instead, and this machine's timing. Without a command,
only what a guest boots is prepared.
"""

import argparse
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from archive import Archive
from image import KERNELS, ROOT, MissingError, checkout, prepare

_INIT = """#!/bin/bash
export PATH=/venv/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8
export CI=true BENCHCTL_GUEST=1
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts; mount -t tmpfs tmp /tmp -o mode=1777; mount -t tmpfs run /run
mount -t tmpfs shm /dev/shm -o mode=1777; mount -t cgroup2 cgroup /sys/fs/cgroup
ln -s /proc/self/fd /dev/fd
echo '127.0.0.1 localhost guest' > /etc/hosts; hostname guest; ip link set lo up
cd /benchctl
stty -F /dev/ttyS1 -opost
setsid bash /guest-command < /dev/null > /dev/ttyS1 2>&1
echo $? > /dev/ttyS2
echo o > /proc/sysrq-trigger; sleep 100
"""
# khugepaged copies pages for milliseconds without giving the one processor away, now and then.
_KERNEL_WORDS = "console=ttyS0 quiet panic=-1 rootfstype=tmpfs transparent_hugepage=never"
_MEMORY_MB = 4000
_LONGEST_S = 3600


def _pack_checkout(path, command):
    names = checkout()
    folders = {str(folder) for name in names for folder in Path(name).parents} - {"."}
    with Archive(path) as out:
        out.file("init", _INIT.encode(), 0o755)
        out.file("guest-command", command.encode())
        out.directory("benchctl")
        for folder in sorted(folders):
            out.directory(f"benchctl/{folder}")
        for name in names:
            file = ROOT / name
            out.file(f"benchctl/{name}", file.read_bytes(), file.stat().st_mode & 0o755)


def _machine(host_clock):
    if host_clock:
        return ["-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2"]
    return ["-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off", "-cpu", "max"]


def run(version, command, host_clock=False):
    """Run a shell command in a guest, its output to ours; returns its exit code."""
    image, modules, base = prepare(version)
    with tempfile.TemporaryDirectory() as scratch:
        work, console, code = (Path(scratch, name) for name in ("work.cpio", "console", "code"))
        _pack_checkout(work, command)
        initrd = Path(scratch, "initrd")
        with initrd.open("wb") as out:
            for part in (base, modules, work):
                out.write(part.read_bytes())
        argv = [
            "qemu-system-x86_64", "-M", "q35", *_machine(host_clock), "-m", str(_MEMORY_MB),
            "-nodefaults", "-no-reboot", "-display", "none", "-nic", "none",
            "-kernel", image, "-initrd", initrd,
            "-append", _KERNEL_WORDS,
            "-serial", f"file:{console}", "-serial", "stdio", "-serial", f"file:{code}",
        ]  # fmt: skip
        # Its output is ours as it comes; a pipe would hold back dots until their line ends.
        with suppress(subprocess.TimeoutExpired):
            subprocess.run(argv, stdin=subprocess.DEVNULL, check=True, timeout=_LONGEST_S)
        if not code.exists() or not code.read_text().strip():
            print(console.read_text(errors="replace")[-4000:], file=sys.stderr)
            print("guest: ended without an answer", file=sys.stderr)
            return 1
        return int(code.read_text())


def main():
    parser = argparse.ArgumentParser(prog="python tests/guest", description=__doc__)
    parser.add_argument("kernel", choices=KERNELS)
    parser.add_argument("--host-clock", action="store_true", help="two processors, our timing")
    parser.add_argument("command", nargs="*", help="a shell command, after --")
    arguments = parser.parse_intermixed_args()
    try:
        if not arguments.command:
            prepare(arguments.kernel)
            return 0
        return run(arguments.kernel, " ".join(arguments.command), arguments.host_clock)
    except MissingError as error:
        print(f"guest: {error}", file=sys.stderr)
        return 3


if __name__ == "__main__":
    sys.exit(main())
