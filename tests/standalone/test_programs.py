"""What every built-in tool promises as a program that stands alone."""

import subprocess
import sys

import pytest
from needs import OLD_PYTHONS, python_of
from standalone.programs import PACKAGES, PLUGINS, one_file, path_of
from waiting import DEADLINE_S

every_tool = pytest.mark.parametrize("name", PACKAGES)


def run(*command, **options):
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=DEADLINE_S, **options
    )


def loaded_by(*command):
    """Return the modules that a program in Python has loaded at its end."""
    done = run(sys.executable, *command)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@every_tool
@pytest.mark.parametrize("version", OLD_PYTHONS)
def test_by_its_path_it_says_to_an_old_python_which_it_needs(name, version):
    tool = path_of(name)
    said = f"{name} needs Python 3.9 or newer, and this is Python {version}\n"
    for path, directory in ((tool.parent, "/"), (tool, "/"), (tool.name, tool.parent)):
        done = run(python_of(version), "-B", path, "--version", cwd=directory)
        assert (done.returncode, done.stdout, done.stderr) == (1, "", said)


@every_tool
@pytest.mark.parametrize("version", OLD_PYTHONS)
def test_as_one_file_it_says_to_an_old_python_which_it_needs(name, version, tmp_path):
    # In bytes: these Pythons read their program in UTF-8 in every locale.
    done = subprocess.run(
        [python_of(version), "-I", "-", "--version"],
        input=one_file(name, tmp_path).read_bytes(),
        capture_output=True, check=False, timeout=DEADLINE_S,
    )  # fmt: skip
    said = f"{name} needs Python 3.9 or newer, and this is Python {version}\n"
    assert (done.returncode, done.stdout, done.stderr.decode()) == (1, b"", said)


@every_tool
def test_as_one_file_it_prints_itself(name, tmp_path):
    file = one_file(name, tmp_path)
    assert run(sys.executable, "-I", file, "--self").stdout == file.read_text()


@every_tool
def test_it_imports_nothing_but_the_standard_library(name):
    package = PACKAGES[name]
    program = (
        f"import sys; sys.path.append(sys.argv[1]); import {package}.{name}.cli; "
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    loaded = loaded_by("-I", "-S", "-c", program, PLUGINS)
    assert loaded >= {package, "benchctl_standalone"}
    loaded -= {package, "benchctl_standalone", "__main__"}
    assert loaded <= sys.stdlib_module_names | set(sys.builtin_module_names)
    assert not loaded & {"dataclasses", "inspect", "pathlib", "tempfile", "asyncio", "urllib"}


@every_tool
def test_its_console_script_does_not_import_benchctl(name):
    package = PACKAGES[name]
    loaded = loaded_by("-c", f"import sys, {package}.__main__; print(*sys.modules)")
    assert package in loaded
    assert not [one for one in loaded if one.startswith(("benchctl.", "pydantic"))]
