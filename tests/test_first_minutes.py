"""The first ten minutes with the wheel, in an empty home: each way, command by command.

The wheel is installed once, into an environment that has the tests' libraries and none of this
checkout. What a way costs is the number of commands that its reader types.
"""

import fcntl
import json
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from simpleperf.simpleperf_hosts import two_hosts
from waiting import COMMAND_S

ROOT = Path(__file__).parents[1]
ELSEWHERE = ("BENCHCTL_", "PYTHON", "VIRTUAL_ENV", "XDG_")

pytestmark = pytest.mark.once


@pytest.fixture(scope="session")
def installed(tmp_path_factory, worker_id):
    """Return the programs of an environment in which the wheel is installed."""
    parent = tmp_path_factory.getbasetemp()
    place = (parent if worker_id == "master" else parent.parent) / "wheel"
    place.mkdir(exist_ok=True)
    programs = place / "environment" / "bin"
    with (place / "lock").open("w") as lock:  # released when it closes
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "done").exists():
            _install(place, programs / "python")
            (place / "done").touch()
    return programs


def _install(place, python):
    done = ("hatchling", "build", "--target", "wheel", "--directory", place)
    _checked([sys.executable, "-m", *done], cwd=ROOT)
    (wheel,) = place.glob("*.whl")
    _checked([sys.executable, "-m", "venv", "--without-pip", python.parents[1]])
    pip = ("pip", "--python", python, "install", "--quiet", "--no-index", "--no-deps", wheel)
    _checked([sys.executable, "-m", *pip])
    # Paths in a file that is found so are not followed again: this checkout is not among them.
    (site,) = python.parents[1].glob("lib/python*/site-packages")
    (site / "libraries.pth").write_text(sysconfig.get_path("purelib"))


def _checked(argv, **options):
    done = subprocess.run(
        [*map(str, argv)], capture_output=True, text=True, timeout=COMMAND_S, check=False, **options
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


class Newcomer:
    """Somebody with an empty home, who has installed benchctl and nothing else of it."""

    def __init__(self, home, programs):
        self.home = home
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(ELSEWHERE)},
            "HOME": str(home),
            "PATH": os.pathsep.join([str(programs), os.environ["PATH"]]),
        }

    def types(self, *commands, shell=("bash", "-euc")):
        """Type commands, one after the other; returns what they printed. Each must succeed."""
        argv = [*shell, "\n".join(commands)]
        return _checked(
            argv, cwd=self.home, env=self.environment, stdin=subprocess.DEVNULL
        )  # fmt: skip

    def stored(self):
        """Return the newest run."""
        return json.loads(self.types("benchctl export last --format json"))


@pytest.fixture
def newcomer(tmp_path, installed):
    return Newcomer(tmp_path, installed)


def test_the_programs_are_those_of_the_wheel(newcomer, installed):
    said = newcomer.types(
        "python -c 'import benchctl, benchctl_simpleperf; print(benchctl.__file__)'"
    )
    assert Path(said.strip()).is_relative_to(installed.parent)


@pytest.mark.netns
@pytest.mark.tool("ping")
def test_an_engineer_measures_by_1_command_and_has_a_report_to_send_by_2(newcomer):
    with two_hosts(newcomer.home) as (server, client):
        serving = subprocess.Popen(
            [*server.prefix, "benchctl", "serve", "--tool", "simpleperf"],
            cwd=newcomer.home, env=newcomer.environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        try:
            printed = [serving.stdout.readline() for _ in range(2)]
            first = printed[1].strip()
            assert first.startswith(f"benchctl quick {server.address} ")
            there = (*client.prefix, "bash", "-euc")
            # As printed, but shorter.
            said = newcomer.types(f"{first} --duration 1s", shell=there)
            newcomer.types("benchctl report last -o report.html", shell=there)
        finally:
            serving.terminate()
            serving.communicate(timeout=COMMAND_S)
    assert "3 of 3 trials measured." in said
    of_all = "Throughput", "Responsiveness", "RTT idle", "RTT under load", "Loss: 0 %", "Jitter"
    for begin in of_all:
        assert re.search(f"^{begin}", said, flags=re.M), begin
    page = (newcomer.home / "report.html").read_text()
    assert "3 of 3 trials measured." in page
    assert not re.search(r"(?:src|href)=\"?https?:", page)


def test_a_profile_of_ones_own_takes_4_commands(newcomer):
    newcomer.types(
        "benchctl init mine.toml",
        "benchctl plan mine.toml",
        "benchctl run mine.toml --set duration=300ms --repeat 1",  # as printed, but shorter
        "benchctl report last -o mine.html",
    )
    run = newcomer.stored()
    assert {trial["status"] for trial in run["trials"]} == {"ok"}
    assert len(run["trials"]) == 4
    assert "4 of 4 trials measured." in (newcomer.home / "mine.html").read_text()


@pytest.mark.netns
@pytest.mark.tool("iperf3")
def test_an_experiment_with_its_figures_beside_the_papers_takes_2_commands(newcomer):
    said = newcomer.types(
        # As printed, but shorter.
        "benchctl run public-servers --lab public-internet --only server=paris --set duration=1s"
        " --set lab.verify=false",
        "benchctl report last -o paper.md",
    )
    heads, _, send, *_ = said.splitlines()
    assert heads.split()[:5] == ["direction", "n", "throughput", "expected", "reported"]
    assert re.match(r"send +1 .* 383 Mbit/s +400 Mbit/s ", send)
    assert "400 Mbit/s" in (newcomer.home / "paper.md").read_text()


def test_a_plugin_that_measures_takes_5_commands(newcomer):
    plugin = "benchctl_mytool/mytool.py"
    said = newcomer.types(
        "benchctl backends new mytool",
        "cd benchctl-mytool",
        f"benchctl --plugin {plugin} backends record mytool --as short --set count=3",
        f"benchctl backends check {plugin} --transcripts tests/transcripts",
        f"benchctl --plugin {plugin} run mytool.toml",
    )
    assert re.search(r"^RTT: [\d.]+ [um]s", said, flags=re.M)
    assert not re.search(r"^failed", said, flags=re.M)
