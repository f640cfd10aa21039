"""Build a package for Debian and its relatives: benchctl with its own environment in /opt.

The environment has the wheel of ``make dist``, the extras that people use and their locked
versions. It uses the system's Python, whose version the package therefore asks for. ``make deb``
runs this in an environment that has the tools.
"""

from __future__ import annotations

import gzip
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STAGE = ROOT / "build" / "deb"
BIN = Path(sys.executable).parent
PYTHON = Path("/usr/bin/python3")
HOME = Path("opt/benchctl")
EXTRAS = "archive,owamp,plot,report"
PROGRAMS = ("benchctl", "simpleperf", "simpleowamp")
COMPLETIONS = {
    "bash": "usr/share/bash-completion/completions/benchctl",
    "zsh": "usr/share/zsh/vendor-completions/_benchctl",
    "fish": "usr/share/fish/vendor_completions.d/benchctl.fish",
}
CONTROL = """\
Package: benchctl
Version: {version}
Architecture: {architecture}
Maintainer: the benchctl authors
Section: net
Priority: optional
Depends: python3 (>= {python}), python3 (<< {next_python})
Recommends: iperf3, iputils-ping
Suggests: openssh-client, chrony, tcpdump
Description: declarative network benchmark runner for the terminal
 benchctl measures networks by a TOML file with iperf3, ping, owping and its own
 tools, on this machine, on hosts over SSH, or in a virtual network. It keeps
 every sample, and answers with tables, plots, reports and verdicts.
"""
# Python leaves its compiled files there, which dpkg does not know.
REMOVED = """\
#!/bin/sh
set -e
case "$1" in remove|purge) rm -rf /opt/benchctl ;; esac
"""


def main() -> int:
    """Build the package; returns the exit code."""
    python = _text([PYTHON, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"])
    major, minor = map(int, python.split("."))
    if (major, minor) < (3, 11):
        print(f"no package: the system's Python is {python}, and 3.11 is needed", file=sys.stderr)
        return 1
    (wheel,) = (ROOT / "dist").glob("*.whl")
    shutil.rmtree(STAGE, ignore_errors=True)
    stage = STAGE / "benchctl"
    _environment(stage / HOME, wheel)
    _shared(stage)
    version = wheel.name.split("-")[1]
    architecture = _text(["dpkg", "--print-architecture"])
    control = CONTROL.format(
        version=version, architecture=architecture, python=python,
        next_python=f"{major}.{minor + 1}",
    )  # fmt: skip
    _write(stage / "DEBIAN/control", control)
    _write(stage / "DEBIAN/postrm", REMOVED, mode=0o755)
    package = ROOT / "dist" / f"benchctl_{version}_{architecture}.deb"
    _run(["dpkg-deb", "--root-owner-group", "--build", stage, package])
    return 0


def _environment(home: Path, wheel: Path) -> None:
    """Make the environment, with the paths that it will have when it is installed."""
    _run([PYTHON, "-m", "venv", "--without-pip", home])
    locked = (ROOT / "requirements-dev.lock").read_text(encoding="utf-8").splitlines()
    constraints = STAGE / "constraints"
    constraints.write_text("\n".join(line.rstrip("\\") for line in locked if line[:1].isalnum()))
    _run([
        BIN / "uv", "pip", "install", "--quiet", "--python", home / "bin/python", "--link-mode",
        "copy", "--constraint", constraints, f"benchctl[{EXTRAS}] @ {wheel.as_uri()}",
    ])  # fmt: skip
    for file in (home / "bin").iterdir():
        if file.is_symlink():
            continue
        text = file.read_text(encoding="utf-8").replace(str(home), f"/{HOME}")
        file.write_text(text, encoding="utf-8")
    config = home / "pyvenv.cfg"
    kept = re.sub(r"^command = .*\n", "", config.read_text(encoding="utf-8"), flags=re.M)
    config.write_text(kept, encoding="utf-8")
    for cache in home.rglob("__pycache__"):
        shutil.rmtree(cache)


def _shared(stage: Path) -> None:
    """Put programs, man pages, completions and the licence where the system looks for them."""
    for program in PROGRAMS:
        link = stage / "usr/bin" / program
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(f"/{HOME}/bin/{program}")
    for page in sorted((ROOT / "man").glob("*.1")):
        place = stage / "usr/share/man/man1" / f"{page.name}.gz"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(gzip.compress(page.read_bytes(), mtime=0))
    for shell, place in COMPLETIONS.items():
        _write(stage / place, _text([BIN / "benchctl", "--completion", shell]) + "\n")
    _write(stage / "usr/share/doc/benchctl/copyright", (ROOT / "LICENSE").read_text("utf-8"))


def _write(place: Path, text: str, mode: int = 0o644) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text, encoding="utf-8")
    place.chmod(mode)


def _text(argv: Sequence[object]) -> str:
    done = subprocess.run([*map(str, argv)], check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip()


def _run(argv: Sequence[object]) -> None:
    subprocess.run([*map(str, argv)], check=True)


if __name__ == "__main__":
    sys.exit(main())
