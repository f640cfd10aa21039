"""What a release is checked for, and the commands by which the project is carried on."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def dist():
    spec = importlib.util.spec_from_file_location("dist", ROOT / ".ci/dist.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def metadata_of(**changes):
    fields = {
        "Metadata-Version": "2.4",
        "Name": "benchctl",
        "Version": "0.1.0",
        "Summary": "Measures networks",
        "Author": "the benchctl authors",
        "License-Expression": "MIT",
        "License-File": "LICENSE",
        "Keywords": "network",
        "Classifier": "Environment :: Console",
        "Requires-Python": ">=3.11",
        "Requires-Dist": "rich>=14.2",
        "Description-Content-Type": "text/markdown",
        **{name.replace("_", "-"): value for name, value in changes.items()},
    }
    lines = [f"{name}: {value}" for name, value in fields.items() if value]
    return "\n".join([*lines, "", "# benchctl", ""]).encode()


def test_a_file_that_is_missing_and_one_that_strayed_in_are_named(dist):
    found, wanted = {"benchctl/a.py", "notes.txt"}, {"benchctl/a.py", "benchctl/b.py"}
    assert dist.differences("x.whl", found, wanted) == [
        "x.whl: benchctl/b.py is missing",
        "x.whl: notes.txt does not belong there",
    ]


def test_a_wheel_holds_packages_and_profiles_and_no_tests(dist):
    tracked = {"benchctl/a.py", "plugins/benchctl_b/c.py", "profiles/d.toml", "tests/e.py"}
    places = {
        "benchctl": "benchctl",
        "plugins/benchctl_b": "benchctl_b",
        "profiles": "benchctl/profiles",
    }
    assert dist.in_wheel(tracked, places) == {
        "benchctl/a.py", "benchctl_b/c.py", "benchctl/profiles/d.toml",
    }  # fmt: skip


def test_complete_metadata_is_good(dist):
    assert dist.metadata_faults(metadata_of()) == []


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"Author": None}, "metadata: author is missing"),
        ({"Classifier": None}, "metadata: classifiers is missing"),
        ({"License_Expression": None}, "metadata: license_expression is missing"),
        ({"Requires_Python": "three"}, "metadata: 'three' is invalid for 'requires-python'"),
    ],
)
def test_metadata_that_lacks_something_or_is_invalid_is_refused(dist, changes, fault):
    assert dist.metadata_faults(metadata_of(**changes)) == [fault]


@pytest.mark.parametrize(
    "place", ["CONTRIBUTING.md", "README.md", ".ci/run", ".github/workflows/checks.yml"]
)
def test_every_make_target_that_is_named_exists(place):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^([\w-]+):", makefile, flags=re.M)
    named = re.findall(
        r"(?:^ *|\(|\) |`|run: )make (\w[a-z0-9-]*(?: [a-z][a-z-]*)*)",
        (ROOT / place).read_text(encoding="utf-8"),
        flags=re.M,
    )
    assert named
    assert not {name for names in named for name in names.split()} - set(targets)


def test_every_make_target_is_declared_and_explained():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    declared = re.search(r"^\.PHONY: ((?:.*\\\n)*.*)$", makefile, flags=re.M)[1]
    explained = re.findall(r"^([\w-]+):.*## ", makefile, flags=re.M)
    assert set(declared.replace("\\", "").split()) == {*explained, "clean"}
