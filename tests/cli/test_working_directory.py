"""No code from the current directory ever runs, whatever lies there, whoever starts benchctl."""

import shutil
import sys
import tempfile
from pathlib import Path

import pytest
from cli.conftest import Benchctl
from lab.lab_support import ordinary_user

PROFILE = """
[lab]
topology = "pair"
verify = false
[flows.main]
backend = "toy"
from = "sender"
to = "receiver"
"""
COMMANDS = {
    "plan": ("plan", "p.toml"),
    "run in a lab": ("run", "-q", "p.toml"),
    "run on this machine": ("run", "-q", "quickstart", "--set", "duration=0.2s", "--repeat", "1"),
    "doctor": ("doctor",),
    "lab exec": ("lab", "exec", "pair", "sender", "true"),
    "tui": ("tui", "--screenshot", "picture.txt"),
}
PROGRAMS = (
    "unshare", "nsenter", "ip", "tc", "sh", "setpriv", "ping", "iperf3", "owping", "true", "python3"
)  # fmt: skip


WHO = {"as we are": lambda: [sys.executable], "as an ordinary user": ordinary_user}
# Root needs other programs for these than an ordinary user does.
BY_ANYONE = ("run in a lab", "doctor", "lab exec")
CASES = [(who, name) for who in WHO for name in COMMANDS if who != [*WHO][1] or name in BY_ANYONE]


@pytest.fixture
def trapped(who):
    """Benchctl in a directory where files of many names say when they run."""
    words = WHO[who]()
    # Not under tmp_path, which only its owner may enter.
    directory = Path(tempfile.mkdtemp())
    sprung = directory / "sprung"
    sprung.mkdir()
    for path in (directory, sprung):
        path.chmod(0o777)
    # As the installed command, whose first place to look is where it lies itself.
    benchctl = Benchctl(directory, [*words, "-P", "-m", "benchctl"])
    benchctl.environment |= {"HOME": str(directory), "XDG_DATA_HOME": str(directory)}
    benchctl.profile(PROFILE)
    benchctl.sprung = sprung
    yield benchctl
    shutil.rmtree(directory)


def plant_modules(directory, sprung):
    """Put a file there for every module that benchctl could ever ask for by its name."""
    ours = {path.stem for path in Path(__import__("benchctl").__file__).parent.iterdir()}
    packages = {name.partition(".")[0] for name in sys.modules}
    for name in sys.stdlib_module_names | packages | ours | {"usercustomize", "sitecustomize"}:
        note = (
            f"import posix\nposix.close(posix.open({str(sprung / name)!r}, posix.O_CREAT, 0o666))\n"
        )
        (directory / f"{name}.py").write_text(note)
    for name in ("benchctl", "benchctl_simpleperf"):
        (directory / f"{name}.py").unlink(missing_ok=True)
        (directory / name).mkdir()
        (directory / name / "__init__.py").write_text(note)


def plant_programs(directory, sprung):
    for place in (directory, directory / "bin"):
        place.mkdir(exist_ok=True)
        for program in PROGRAMS:
            (place / program).write_text(f"#!/bin/sh\n: > {sprung}/program-{program}\n")
            (place / program).chmod(0o755)


@pytest.mark.netns
@pytest.mark.parametrize(("who", "name"), CASES)
def test_modules_and_programs_that_lie_in_the_current_directory_do_not_run(trapped, name):
    plant_modules(trapped.directory, trapped.sprung)
    plant_programs(trapped.directory, trapped.sprung)
    trapped.environment["PATH"] = f":.:bin:{trapped.environment['PATH']}"
    result = trapped(*COMMANDS[name])
    assert sorted(path.name for path in trapped.sprung.iterdir()) == []
    assert result.returncode == 0, result.stderr


def test_a_path_of_nothing_is_that_of_the_system_and_not_the_current_directory(benchctl):
    (benchctl.directory / "sh").write_text("#!/bin/false\n")
    (benchctl.directory / "sh").chmod(0o755)
    benchctl.profile('[flows.main]\nbackend = "toy"')
    benchctl.environment["PATH"] = ""
    result = benchctl("run", "-q", "p.toml")
    assert result.returncode == 0, result.stderr
