"""``benchctl backends`` says of each whether it can be used, and writes new ones."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchctl.api import API_VERSION
from benchctl.testing import scaffold

TOY = Path(__file__).parents[1].joinpath("toy.py").read_text(encoding="utf-8")
NEWER = API_VERSION + 1
STATES = {
    "fine": (TOY, "ok", ""),
    "gone": (
        TOY.replace('Probe(("sh",', 'Probe(("no-such-shell",'),
        "tool missing", "no program no-such-shell in the PATH",
    ),
    "odd": (
        TOY.replace("echo toy 1.0", "echo toy one").replace(
            "return Tool(output.split()[1])", 'raise ValueError("its version is no number")'
        ),
        "tool missing", "its version is no number",
    ),
    "future": (
        TOY.replace("name =", f"api_version = {NEWER}\n    name ="),
        "incompatible", f"it was written for version {NEWER} of benchctl.api",
    ),
    "wants": (
        "from benchctl.api import FromTheFuture\n",
        "incompatible", "cannot import name 'FromTheFuture' from 'benchctl.api'",
    ),
    "halved": ("raise RuntimeError('half done')\n", "broken", "RuntimeError: half done"),
    "mute": (TOY.replace("summary =", "_ ="), "broken", "summary must be set, and of type str"),
    "probing": (
        TOY.replace('return Probe(("sh",', '1 / 0; return Probe(("sh",'),
        "broken", "failed in probe: ZeroDivisionError: division by zero",
    ),
    "reading": (
        TOY.replace("output.split()[1]", "output.split()[9]"),
        "broken", "failed in read_probe: IndexError",
    ),
}  # fmt: skip
"""What a plugin's file is, its status, and a part of the reason."""


@pytest.fixture
def plugins(benchctl):
    """Return a function that writes plugins and names them to benchctl."""

    def write(texts):
        files = [benchctl.directory / f"{name}.py" for name in texts]
        for file, text in zip(files, texts.values(), strict=True):
            file.write_text(text.replace('name = "toy"', f'name = "{file.stem}"'))
        benchctl.environment["BENCHCTL_PLUGINS"] = ":".join(map(str, files))

    return write


def test_each_status_has_its_reason_and_what_to_do(benchctl, plugins):
    plugins({name: text for name, (text, *_) in STATES.items()})
    listed = benchctl("backends", "--json")
    assert (listed.returncode, listed.stderr) == (0, "")
    entries = {entry["name"]: entry for entry in map(json.loads, listed.stdout.splitlines())}
    shown = benchctl("backends").stdout
    for name, (_, status, reason) in STATES.items():
        entry = entries[name]
        assert entry["status"] == status, entry
        assert entry["usable"] is (status == "ok")
        assert reason in entry["reason"]
        assert bool(entry["remedy"]) is (status != "ok")
        assert entry["reason"] in shown
        assert entry["remedy"] in shown
        assert entry["origin"] == str(benchctl.directory / f"{name}.py")
    assert entries["ping"]["status"] in ("ok", "tool missing")
    assert "future       incompatible\n" in shown


def test_a_backend_is_listed_with_its_version_of_the_api_and_its_metrics(benchctl, plugins):
    plugins({name: STATES[name][0] for name in ("fine", "future", "halved")})
    listed = benchctl("backends", "--json").stdout.splitlines()
    entries = {entry["name"]: entry for entry in map(json.loads, listed)}
    versions = {name: entries[name]["api_version"] for name in ("fine", "future", "halved")}
    assert versions == {"fine": 1, "future": NEWER, "halved": None}
    assert entries["fine"]["metrics"] == ["throughput_bps", "luck"]
    assert entries["fine"]["directions"] == ["send"]
    source = benchctl.directory / "fine.py"
    assert f"throughput_bps, luck\n{'':13}from {source}, API 1\n" in benchctl("backends").stdout


def test_names_are_listed_without_loading_any(benchctl, plugins):
    plugins({"nosy": "open('loaded', 'w')\n", "fine": TOY})
    names = benchctl("backends", "--names").stdout.splitlines()
    assert names == sorted(names)
    assert {"fine", "iperf3", "nosy", "ping"} <= set(names)
    assert json.loads(benchctl("backends", "--names", "--json").stdout) == names
    assert not (benchctl.directory / "loaded").exists()


def test_a_command_takes_no_options_of_the_list(benchctl):
    refused = benchctl("backends", "--json", "new", "mine")
    assert refused.returncode == 2
    assert "--json is an option of the list, not of new" in refused.stderr


@pytest.mark.parametrize(
    "name", ["", "Mine", "my-tool", "7up", "été", "class", "socket", "../x", "x" * 65, "a b"]
)
def test_a_name_that_python_cannot_import_is_refused_in_one_line(benchctl, name):
    refused = benchctl("backends", "new", "--", name)
    assert refused.returncode == 2
    assert refused.stdout == ""
    (line,) = refused.stderr.splitlines()
    assert line.startswith(f'benchctl: no backend can be called "{name}": ')
    assert [path.name for path in benchctl.directory.iterdir()] == []


def test_a_name_that_is_taken_is_refused(benchctl):
    refused = benchctl("backends", "new", "ping")
    assert refused.returncode == 2
    assert 'there is a backend "ping" already, from benchctl ' in refused.stderr


@pytest.mark.parametrize(
    ("options", "written"), [([], "benchctl-mine"), (["--single-file"], "mine.py")]
)
def test_nothing_is_overwritten_and_nothing_is_left_half(benchctl, options, written):
    there = benchctl.directory / written
    assert benchctl("backends", "new", "mine", *options).returncode == 0
    assert [path.name for path in benchctl.directory.iterdir()] == [written]
    before = {path: path.read_text() for path in [there, *there.rglob("*")] if path.is_file()}
    again = benchctl("backends", "new", "mine", *options)
    assert (again.returncode, again.stderr) == (
        2, f"benchctl: {written}: the file exists\n  choose another name\n",
    )  # fmt: skip
    nowhere = benchctl("backends", "new", "mine", "--directory", "nowhere", *options)
    assert nowhere.returncode == 2
    assert nowhere.stderr == f"benchctl: nowhere/{written}: No such file or directory\n"
    assert [path.name for path in benchctl.directory.iterdir()] == [written]
    assert all(path.read_text() == text for path, text in before.items())


def test_what_new_prints_is_what_it_writes(benchctl):
    (benchctl.directory / "there").mkdir()
    done = benchctl("backends", "new", "mine", "--directory", "there")
    told = {benchctl.directory / line for line in done.stdout.splitlines()}
    assert told == {path for path in benchctl.directory.rglob("*") if path.is_file()}
    assert done.stderr.startswith("next: cd there/benchctl-mine, ")


# A short name, one of several words, and one that is a name of the API too.
@pytest.mark.parametrize("name", ["x", "a_longer_name_of_many_words", "sample"])
def test_what_new_writes_has_no_fault_that_ruff_knows(name, tmp_path):
    for file, text in {**scaffold.package(name), **scaffold.single_file(name)}.items():
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    ruff = [sys.executable, "-m", "ruff"]
    for check in (["check", "--no-cache"], ["format", "--check", "--no-cache"]):
        done = subprocess.run(
            [*ruff, *check, tmp_path], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_a_single_file_is_the_backend_of_the_package():
    (text,) = scaffold.single_file("mine").values()
    assert text == scaffold.package("mine")["benchctl_mine/mine.py"]


def test_what_new_writes_passes_the_check_and_measures(benchctl, port):
    assert benchctl("backends", "new", "mine", "--single-file").returncode == 0
    file = "mine.py"
    written = benchctl.directory / file
    # Other tests use the port that it chooses.
    written.write_text(written.read_text().replace("=7007", f"={port}"))
    checked = benchctl("backends", "check", file)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    text = '[flows.x]\nbackend = "mine"\ncount = 3\n'
    done = benchctl("--plugin", file, "run", "-q", benchctl.profile(text))
    assert done.returncode == 0, done.stderr
    heads, _, row = done.stdout.splitlines()[:3]
    assert heads.split() == ["n", "rtt", "loss"]
    assert row.split()[0] == "1"
