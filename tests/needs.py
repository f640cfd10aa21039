"""The requirements of tests besides Python: how to detect that one is missing, how to install it.

A test whose requirement is missing is skipped with its reason, and the end of the test run says how
to install it. With ``CI`` set a skip is a failure, except for the few requirements that no package
can meet.
"""

import os
import shutil
import socket
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

PACKAGES = {
    "ip": "iproute2",
    "mtr": "mtr-tiny",
    "nft": "nftables",
    "postgres": "postgresql",
    "ping": "iputils-ping",
    "setpriv": "util-linux",
    "ssh": "openssh-client",
    "sshd": "openssh-server",
    "tc": "iproute2",
    "unshare": "util-linux",
}
"""The Debian package of a program where its name is another."""
BESIDE_THE_PATH = ("/usr/sbin", "/sbin", "/usr/lib/postgresql/*/bin")
"""Where programs are that the PATH of ordinary users lacks; Debian has each PostgreSQL apart."""
OWAMP_PROGRAMS = ("owampd", "owping", "twampd", "twping")
"""Of no package."""
NOT_IN_EVERY_CI = {
    "needs BBR": "a module of the machine's own kernel",
    "needs IPv6": "a setting of the machine",
    "needs nf_tables": "a module of the machine's own kernel",
    "needs Python 3": "no package of current distributions",
    **{f"needs {name}": "no package of current distributions" for name in OWAMP_PROGRAMS},
}
"""What may be missing in CI, and why it is not installed there."""


@cache
def python_of(version):
    """Return a Python of a version, such as 3.9; empty if this machine has none."""
    # What pyenv has installed goes first: its shim in the PATH is there even when it runs nothing.
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    installed = sorted((root / "versions").glob(f"{version}.*/bin/python{version}"))
    for python in (*map(str, installed), shutil.which(f"python{version}")):
        if python and not subprocess.run([python, "-c", ""], check=False).returncode:
            return python
    return ""


def python_39():
    """Return the oldest Python that runs what is sent to other hosts, where this machine has it."""
    return python_of("3.9")


OLD_PYTHONS = [
    pytest.param(
        version,
        marks=pytest.mark.skipif(
            not python_of(version), reason=f"needs Python {version}: pyenv install {version}"
        ),
    )
    for version in ("3.6", "3.7", "3.8")
]
"""Versions that hosts have and that are too old: RHEL 8 has 3.6, Ubuntu 20.04 has 3.8."""


PYTHONS = [
    pytest.param(sys.executable, id="this Python"),
    pytest.param(
        python_39(),
        id="Python 3.9",
        marks=pytest.mark.skipif(not python_39(), reason="needs Python 3.9: pyenv install 3.9"),
    ),
]
"""Those that run what is sent to other hosts."""


def missing(item):
    """Return what a test needs and this machine lacks, one sentence each."""
    programs = {name for mark in item.iter_markers("tool") for name in mark.args}
    if item.get_closest_marker("postgres"):
        programs |= {"postgres", "setpriv"}
    found = [_missing_program(name) for name in sorted(programs)]
    if item.get_closest_marker("netns"):
        found.append(_missing_program("ip") or _missing_namespaces())
    if item.get_closest_marker("ipv6"):
        found.append(_missing_ipv6())
    return list(filter(None, found))


def program(name):
    """Return the path of a program; empty if it is not there."""
    if found := shutil.which(name):
        return found
    found = [path for folder in BESIDE_THE_PATH for path in Path("/").glob(f"{folder[1:]}/{name}")]
    return str(max(found, default=""))


def _missing_program(name):
    if program(name):
        return ""
    if name in OWAMP_PROGRAMS:
        return f"needs {name}: build github.com/perfsonar/owamp, and have it on the PATH"
    return f"needs {name}: apt-get install {PACKAGES.get(name, name)}"


@cache
def _missing_namespaces():
    if lacks := _missing_program("unshare"):
        return lacks
    result = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--net", "--mount", "true"],
        capture_output=True,
        text=True,
        check=False,
    )
    if not result.returncode:
        return ""
    why = result.stderr.strip()
    return f"needs network namespaces: run as root, in a container with --privileged ({why})"


@cache
def _missing_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as sock:
            sock.bind(("::1", 0))
    except OSError as error:
        return f"needs IPv6 on loopback: sysctl net.ipv6.conf.lo.disable_ipv6=0 ({error.strerror})"
    return ""


def reason_of(report):
    """Return why a test was skipped."""
    return report.longrepr[2].removeprefix("Skipped: ")


def forbid_silent_skip(report):
    """Make a skip a failure in CI, unless no package would have prevented it."""
    if os.environ.get("CI") and report.skipped and not hasattr(report, "wasxfail"):
        reason = reason_of(report)
        if not reason.startswith(tuple(NOT_IN_EVERY_CI)):
            report.outcome, report.longrepr = "failed", f"skipped in CI: {reason}"
    return report


def summarize(terminalreporter):
    """Say how many tests were skipped, and how to have them all."""
    reasons = Counter(map(reason_of, terminalreporter.getreports("skipped")))
    if not reasons:
        return
    terminalreporter.section(f"{reasons.total()} tests were skipped; to have them all:")
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"{count:5} {reason}")
        for need, why in NOT_IN_EVERY_CI.items():
            if os.environ.get("CI") and reason.startswith(need):
                terminalreporter.write_line(f"      may be missing in CI: {why}")
