"""What a guest boots: a Debian kernel, and a small Debian with benchctl's dependencies.

Everything comes from the package registries that this machine is set up for, and is kept under the
user's cache directory: a kernel until apt has a newer one (asked once a day), the system until the
lock file, what the package says of its installation, or this recipe changes.
"""

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
from pathlib import Path

from archive import Archive

ROOT = Path(__file__).parents[2]
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "benchctl-guest"

# Release of Debian, and what its packages of kernels are called. Kernels of one release run with
# the programs of another.
KERNELS = {
    "6.1": ("bookworm", r"linux-image-(6\.1\..*-cloud-amd64)"),
    "6.12": ("trixie", r"linux-image-(6\.12\..*-cloud-amd64)"),
    "newest": ("trixie-backports", r"linux-(?:image|binary)-(\d.*-cloud-amd64)"),
}

_SYSTEM = "bookworm"
_PYTHON = "3.11"
_PACKAGES = (
    "ethtool,iperf3,iproute2,iputils-ping,kmod,libcap2-bin,procps,python3,python3-venv,tcpdump,tmux"
)
_PROGRAMS = {
    "qemu-system-x86_64": "qemu-system-x86", "mmdebstrap": "mmdebstrap", "depmod": "kmod",
    "apt-get": "apt", "dpkg-deb": "dpkg",
}  # fmt: skip
# The rest of a kernel's modules is drivers of devices that the guest does not have.
_MODULES = re.compile(
    r"/kernel/(net|lib|crypto|arch)/|/drivers/net/(veth|dummy|ifb|tun)\.ko|/modules\."
)
# 600 MB that no test of labs uses, and a guest's file system is its memory.
_LARGE = (
    "contourpy|duckdb|fonttools|kiwisolver|matplotlib|mypy|numpy|pandas|pillow|pyarrow|ruff|scipy"
)
_LEFT_OUT = re.compile(rf"^({_LARGE})==.*\n(?: .*\n)*", re.MULTILINE)
_DAY_S = 86400


class MissingError(Exception):
    """What this machine lacks for a guest."""


def checkout():
    """Return the names of this checkout's files, those that git does not know yet among them."""
    listed = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        stdout=subprocess.PIPE, check=True,
    ).stdout.decode()  # fmt: skip
    return [name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def prepare(version):
    """Return the files of a kernel, of its modules and of the system; makes what is missing."""
    missing = {package for program, package in _PROGRAMS.items() if not shutil.which(program)}
    if missing:
        raise MissingError(f"a guest needs the packages {' '.join(sorted(missing))}")
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return *_kernel(version), _system()


def _kernel(version):
    release, pattern = KERNELS[version]
    apt = _Apt(release)
    name = apt.newest(pattern)
    where = CACHE / f"kernel-{name}"
    files = where / "vmlinuz", where / "modules.cpio"
    if not all(file.exists() for file in files):
        with tempfile.TemporaryDirectory() as scratch:
            tree = Path(scratch, "tree")
            for package in apt.packages_of(name):
                deb = apt.download(package, Path(scratch))
                subprocess.run(["dpkg-deb", "-x", deb, tree], check=True)
            where.mkdir(parents=True, exist_ok=True)
            _pack_kernel(tree, *files)
    return files


def _system():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    # The rest of it says how to check the project, which changes more often.
    installed = [project["build-system"], project["project"], project["tool"]["hatch"]]
    recipe = json.dumps(installed).encode()
    recipe += (ROOT / "requirements-dev.lock").read_bytes() + Path(__file__).read_bytes()
    image = CACHE / f"system-{hashlib.sha256(recipe).hexdigest()[:16]}.cpio"
    if not image.exists():
        for old in CACHE.glob("system-*.cpio"):
            old.unlink()
        with tempfile.TemporaryDirectory() as scratch:
            draft = image.with_suffix(".draft")
            _pack_system(Path(scratch), draft)
            draft.replace(image)
    return image


class _Apt:
    """apt with one release's packages, in a state of its own."""

    def __init__(self, release):
        state = CACHE / "apt" / release
        for part in ("lists/partial", "cache/archives/partial"):
            (state / part).mkdir(parents=True, exist_ok=True)
        sources = state / "sources.list"
        uri = mirror()
        lines = [f"deb {uri} {release} main"]
        if "-" not in release:
            security = re.sub(r"/debian/?$", "/debian-security/", uri)
            lines.append(f"deb {security} {release}-security main")
        sources.write_text("\n".join(lines) + "\n")
        keys = "Dir::Etc::TrustedParts=/etc/apt/trusted.gpg.d/"
        self._options = [
            "-o", f"Dir::State::lists={state}/lists", "-o", f"Dir::Cache={state}/cache",
            "-o", f"Dir::Etc::SourceList={sources}", "-o", "Dir::Etc::SourceParts=/dev/null",
            "-o", keys, "-o", "APT::Sandbox::User=root", "-o", "Acquire::Languages=none",
        ]  # fmt: skip
        stamp = state / "updated"
        if not stamp.exists() or time.time() - stamp.stat().st_mtime > _DAY_S:
            self._run("apt-get", "-qq", "update")
            stamp.touch()

    def newest(self, pattern):
        """Return the version of the newest kernel whose package has a name like this."""
        names = self._run("apt-cache", "pkgnames", "linux-").split()
        found = [match[1] for name in names if (match := re.fullmatch(pattern, name))]
        if not found:
            raise MissingError(f"apt has no package {pattern}")
        return max(found, key=lambda name: [int(part) for part in re.findall(r"\d+", name)])

    def packages_of(self, version):
        names = self._run("apt-cache", "pkgnames", "linux-").split()
        parts = [f"linux-{part}-{version}" for part in ("image", "binary", "modules")]
        # A package that only leads to the other two has nothing in it.
        return [name for name in parts if name in names]

    def download(self, package, folder):
        self._run("apt-get", "-qq", "download", package, cwd=folder)
        return next(folder.glob(f"{package}_*.deb"))

    def _run(self, program, *arguments, cwd=None):
        argv = [program, *self._options, *arguments]
        return subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True, cwd=cwd).stdout


def mirror():
    """Return the address of the Debian mirror that this machine's apt uses."""
    argv = ["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE)"]
    lines = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True).stdout.split("\n")
    for line in lines:
        uri, _, release = line.partition(" ")
        if re.search(r"/debian/?$", uri) and release:
            return uri
    raise MissingError("apt knows no Debian mirror")


def _pack_kernel(tree, image, archive):
    found = [*tree.glob("boot/vmlinuz-*"), *tree.glob("**/modules/*/vmlinuz")]
    shutil.copy(found[0], image)
    modules = next(folder for folder in tree.glob("**/modules/*") if (folder / "kernel").is_dir())
    for file in modules.rglob("*"):
        if file.is_file() and not _MODULES.search(str(file)):
            file.unlink()
    base = tree / "base"
    home = base / "lib/modules"
    home.mkdir(parents=True)
    modules.rename(home / modules.name)
    subprocess.run(["depmod", "-b", base, modules.name], check=True)
    tarball = tree / "modules.tar"
    with tarfile.open(tarball, "w") as tar:
        tar.add(home / modules.name, f"usr/lib/modules/{modules.name}")
    with Archive(archive) as out, tarfile.open(tarball) as tar:
        out.directory("usr")
        out.directory("usr/lib")
        out.directory("usr/lib/modules")
        out.tree(tar)


def _pack_system(scratch, image):
    wheels = scratch / "wheels"
    lock = wheels / "lock"
    wheels.mkdir()
    lock.write_text(_LEFT_OUT.sub("", (ROOT / "requirements-dev.lock").read_text()))
    platforms = [f"manylinux{name}_x86_64" for name in ("2014", "_2_17", "_2_28")]
    argv = [
        sys.executable, "-m", "pip", "download", "--quiet", "--require-hashes", "--no-deps",
        "--only-binary", ":all:", "--python-version", _PYTHON, "--dest", wheels, "-r", lock,
        *(word for name in platforms for word in ("--platform", name)),
    ]  # fmt: skip
    subprocess.run(argv, check=True)
    copy = scratch / "benchctl"
    for name in checkout():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, copy / name)
    # What this machine's environment says to pip is about places that the guest does not have.
    pip = "/venv/bin/python -m pip --isolated install --quiet --no-index"
    inside = (
        "python3 -m venv /venv"
        f" && {pip} --find-links /wheels --require-hashes -r /wheels/lock"
        f" && {pip} --no-deps --no-build-isolation --editable /benchctl"
        " && rm -rf /wheels /benchctl"
    )
    tarball = scratch / "system.tar"
    argv = [
        "mmdebstrap", "--quiet", "--variant=minbase", f"--include={_PACKAGES}",
        "--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-exclude=/usr/share/man/*",
        "--dpkgopt=path-exclude=/usr/share/locale/*",
        f"--customize-hook=copy-in {wheels} {copy} /",
        f"--customize-hook=chroot \"$1\" sh -c '{inside}'",
        "--customize-hook=rm -rf \"$1\"/var/lib/apt/lists/* \"$1\"/var/cache/*",
        _SYSTEM, tarball, mirror(),
    ]  # fmt: skip
    subprocess.run(argv, check=True)
    with Archive(image) as out, tarfile.open(tarball) as tar:
        out.tree(tar)
