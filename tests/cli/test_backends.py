"""``benchctl backends`` says of each whether it can be used."""

import json
from pathlib import Path

import pytest

from benchctl.api import API_VERSION

TOY = Path(__file__).with_name("toy.py").read_text(encoding="utf-8")
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
