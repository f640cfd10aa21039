"""What a release is checked for, and the commands by which the project is carried on."""

import importlib.util
import re
from pathlib import Path

import pytest

from benchctl.cli.shared import versions
from benchctl.cli.shared.versions import version_lines

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


def test_a_container_has_what_quick_and_serve_need_and_runs_without_root():
    text = (ROOT / "Containerfile").read_text(encoding="utf-8")
    lines = text.replace("\\\n", " ").splitlines()
    steps = [line.split(maxsplit=1) for line in lines if line and not line.startswith("#")]
    words = [word for word, _ in steps]
    assert words[0] == "FROM"
    assert words[-3:] == ["WORKDIR", "ENTRYPOINT", "CMD"]
    assert ":latest" not in steps[0][1]
    assert ":" in steps[0][1]
    assert dict(steps)["USER"] == "1000"  # by its number anybody sees that it is not root
    copied = [place for word, rest in steps if word == "COPY" for place in rest.split()[:-1]]
    assert [place for place in copied if not (ROOT / place).exists()] == []
    runs = " ".join(rest for word, rest in steps if word == "RUN")
    assert "--require-hashes -r /src/requirements.lock" in runs
    assert {"iperf3", "iputils-ping", "openssh-client"} <= {*runs.split()}
    assert "--privileged" in text


def test_what_the_package_for_debian_says_is_complete():
    spec = importlib.util.spec_from_file_location("deb", ROOT / ".ci/deb.py")
    deb = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(deb)
    text = deb.CONTROL.format(version="1", architecture="amd64", python="3.11", next_python="3.12")
    fields = dict(line.split(": ", 1) for line in text.splitlines() if not line.startswith(" "))
    assert {"Package", "Version", "Architecture", "Maintainer", "Description"} <= fields.keys()
    assert fields["Depends"] == "python3 (>= 3.11), python3 (<< 3.12)"
    assert fields["Recommends"] == "iperf3, iputils-ping"


def test_the_version_in_full_has_python_and_the_extras_of_users():
    lines = [*version_lines()]
    assert lines[0].startswith("Python 3.")
    extras = {line.partition(":")[0] for line in lines[2:]}
    assert extras == {"archive", "fleet", "owamp", "parquet", "plot", "report"}


def test_an_extra_that_is_not_installed_is_said(monkeypatch):
    monkeypatch.setattr(versions, "requires", lambda _: ['nothing-like-it>=1; extra == "plot"'])
    assert [*version_lines()][-1] == "plot: nothing-like-it is not installed"
