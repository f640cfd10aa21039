"""Backends are found by entry point or by file, and a broken one harms nobody."""

import subprocess
import sys
import textwrap

import pytest

from benchctl import backends
from benchctl.api import Backend
from benchctl.backends import Registry
from benchctl.errors import IncompatibleError, MissingError, PluginError
from benchctl.plugins import Candidate

PLUGIN = """
from __future__ import annotations
from dataclasses import dataclass
from benchctl.api import Backend, Capabilities, Command, Direction, Duration, Field, Parameters

@dataclass
class State:
    last: Duration | None = None

class P(Parameters):
    duration: Duration = Field(1.0, description="time to measure")

class {name}(Backend[P]):
    name = "{name}"
    summary = "a single file"
    parameters = P
    capabilities = Capabilities((Direction.SEND,))
    def probe(self, role): return None
    def read_probe(self, role, exit_code, output): raise NotImplementedError
    def client(self, flow) -> Command: raise NotImplementedError
    def duration_s(self, params) -> float: return params.duration

BACKEND = {name}()
"""


@pytest.fixture
def registry(monkeypatch):
    """Return the registry of files, as a fresh process would have it."""

    def with_files(*files):
        monkeypatch.setenv("BENCHCTL_PLUGINS", ":".join(map(str, files)))
        return backends.installed.__wrapped__()

    before = set(sys.modules)
    yield with_files
    for name in set(sys.modules) - before:
        if name.startswith("benchctl_plugin_"):
            del sys.modules[name]


@pytest.fixture
def plugin(tmp_path):
    def write(name, text=None, folder="."):
        file = tmp_path / folder / f"{name}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text if text is not None else PLUGIN.format(name=name))
        return file

    return write


def test_the_bundled_backends_are_found_by_their_entry_points(registry):
    found = registry()
    assert {"iperf3", "owping", "ping", "simpleperf"} <= set(found.candidates)
    for name in ("iperf3", "owping", "ping", "simpleperf"):
        assert found.load(name).name == name
        assert found.candidates[name].origin.startswith("benchctl ")


def test_listing_the_backends_imports_none_of_them():
    code = """
        import sys
        from benchctl.backends import installed
        names = set(installed().candidates)
        assert {"iperf3", "ping"} <= names
        print([name for name in sys.modules if name.startswith(("benchctl_", "pydantic"))])
    """
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    assert result.stdout == "[]\n"


def test_a_file_offers_a_backend_of_its_name(registry, plugin):
    file = plugin("Echo")
    found = registry(file)
    assert found.load("Echo").parameters(duration="2s").duration == 2.0
    assert found.load("Echo") is found.load("Echo")
    assert found.candidates["Echo"].origin == str(file)


def test_code_in_the_current_directory_is_not_loaded(registry, plugin, monkeypatch, tmp_path):
    plugin("Echo")
    monkeypatch.chdir(tmp_path)
    assert "Echo" not in registry().candidates


def test_a_file_goes_before_an_installed_backend_of_its_name(registry, plugin):
    found = registry(plugin("ping"))
    assert found.load("ping").summary == "a single file"


def test_an_unknown_name_lists_those_that_are_there():
    with pytest.raises(MissingError, match='no backend "iperf4"') as caught:
        Registry({"b": None, "a": None}).load("iperf4")
    assert caught.value.hint == "available: a, b"
    with pytest.raises(MissingError) as caught:
        Registry({}).load("iperf4")
    assert caught.value.hint == "available: none"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("1 +", "SyntaxError"),
        ("import there_is_no_such_module", "ModuleNotFoundError: No module named"),
        ("raise RuntimeError('half done')", "RuntimeError: half done"),
        ("import sys; sys.exit(3)", "SystemExit: 3"),
        ("", "AttributeError"),
        ("from benchctl.api import Backend\nBACKEND = Backend", "is not a benchctl.api.Backend"),
        ("BACKEND = 'Echo'", "is not a benchctl.api.Backend"),
        (PLUGIN.format(name="Ping"), 'calls itself "Ping"'),
    ],
)
def test_a_broken_file_is_named_with_its_reason_and_harms_no_other(registry, plugin, text, what):
    file = plugin("Broken", text)
    found = registry(file, plugin("Echo"))
    with pytest.raises(MissingError) as caught:
        found.load("Broken")
    assert caught.value.exit_code == 3
    assert 'backend "Broken"' in caught.value.message
    assert what in caught.value.message
    assert str(file) in caught.value.message + caught.value.hint
    assert isinstance(found.load("Echo"), Backend)


@pytest.mark.parametrize(
    ("version", "supported"), [(2, False), (3, True), (4, True), (5, False), ('"4"', False)]
)
def test_a_backend_is_loaded_if_its_version_of_the_api_is_supported(
    registry, plugin, monkeypatch, version, supported
):
    monkeypatch.setattr("benchctl.api.OLDEST_API_VERSION", 3)
    monkeypatch.setattr("benchctl.api.API_VERSION", 4)
    head = f"    api_version = {version}\n    name ="
    found = registry(plugin("Echo", PLUGIN.format(name="Echo").replace("    name =", head)))
    if supported:
        assert found.load("Echo").api_version == version
        return
    with pytest.raises(PluginError) as caught:
        found.load("Echo")
    assert isinstance(caught.value, IncompatibleError) is isinstance(version, int)
    assert caught.value.exit_code == 3


def test_a_backend_without_a_version_is_of_the_first(registry, plugin):
    assert registry(plugin("Echo")).load("Echo").api_version == 1


@pytest.mark.parametrize("attribute", ["name", "summary", "parameters", "capabilities"])
def test_a_backend_that_lacks_what_every_one_has_is_broken(registry, plugin, attribute):
    text = PLUGIN.format(name="Echo").replace(f"    {attribute} =", "    other =")
    with pytest.raises(PluginError, match=f"{attribute} must be set, and of type "):
        registry(plugin("Echo", text)).load("Echo")


def test_a_file_that_is_not_there_is_a_missing_backend(registry, tmp_path):
    with pytest.raises(MissingError, match="FileNotFoundError"):
        registry(tmp_path / "gone.py").load("gone")


def test_something_that_is_no_python_file_is_a_missing_backend(registry, tmp_path):
    with pytest.raises(MissingError, match="is not a Python file"):
        registry(tmp_path / "notes.txt").load("notes")


def test_of_two_files_with_one_name_none_is_taken(registry, plugin):
    one, two = plugin("Echo", folder="one"), plugin("Echo", folder="two")
    with pytest.raises(MissingError, match="both offer this name") as caught:
        registry(one, two).load("Echo")
    assert f"{one} and {two}" in caught.value.hint


def test_a_file_named_twice_is_one_backend(registry, plugin):
    file = plugin("Echo")
    assert registry(file, file).load("Echo").name == "Echo"


def test_of_two_packages_with_one_backend_none_is_taken_and_the_rest_work(monkeypatch):
    class Entry:
        def __init__(self, name, package):
            self.name, self.value = name, f"{package}:BACKEND"
            self.dist = type("Dist", (), {"metadata": {"Name": package, "Version": "1.0"}})

        def load(self):
            raise AssertionError("nobody can say which is meant")

    entries = [Entry("x", "one"), Entry("x", "two")]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: entries)
    with pytest.raises(MissingError) as caught:
        backends.installed.__wrapped__().load("x")
    assert 'backend "x" cannot be loaded' in caught.value.message
    assert "one 1.0 and two 1.0" in caught.value.hint


def test_a_candidate_is_loaded_once_and_only_when_asked_for():
    loaded = []

    def load():
        loaded.append(1)
        raise ImportError("no")

    registry = Registry({"x": Candidate("x", "here", load)})
    assert not loaded
    for _ in range(2):
        with pytest.raises(MissingError):
            registry.load("x")
    assert len(loaded) == 2  # a failure is not remembered: the user may mend it


def test_a_file_that_is_named_without_its_directories_is_not_loaded(
    registry, plugin, monkeypatch, tmp_path
):
    plugin("here")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MissingError, match="BENCHCTL_PLUGINS takes whole paths"):
        registry("here.py").load("here")
