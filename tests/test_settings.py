"""The settings of a person: what is in force, where it comes from, and what is wrong with it."""

import pytest

from benchctl.errors import ProfileError, UsageError
from benchctl.settings import NAMES, remember, settings


@pytest.fixture
def file(tmp_path, monkeypatch):
    """The settings file, not yet there, of a user without any variable."""
    for name in ("BENCHCTL_STORE", "BENCHCTL_SETTINGS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    return settings().path


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_without_a_file_every_setting_has_its_default(file):
    assert {settings().find(name).origin for name in NAMES} == {"default"}
    assert settings()["store"].name == "runs.sqlite"
    assert (settings()["glyphs"], settings()["theme"]) == (None, None)


def test_a_setting_tells_the_line_that_it_comes_from(tmp_path, monkeypatch):
    file = write(tmp_path / "mine.toml", '# mine\nunits = "bytes"\ntheme = "nord"\n')
    monkeypatch.setenv("BENCHCTL_SETTINGS", str(file))
    assert settings()["theme"] == "nord"
    assert settings().find("units").origin == f"{file}:2"
    assert settings().find("glyphs").origin == "default"


def test_the_environment_goes_before_the_file(tmp_path, monkeypatch):
    file = write(tmp_path / "mine.toml", 'store = "/a/runs.sqlite"\n')
    monkeypatch.setenv("BENCHCTL_SETTINGS", str(file))
    monkeypatch.delenv("BENCHCTL_STORE", raising=False)
    assert str(settings()["store"]) == "/a/runs.sqlite"
    monkeypatch.setenv("BENCHCTL_STORE", "here.sqlite")
    assert (str(settings()["store"]), settings().find("store").origin) == (
        "here.sqlite",
        "BENCHCTL_STORE",
    )


def test_a_path_may_begin_with_the_home_directory(file):
    write(file, 'store = "~/r.sqlite"\n[programs]\niperf3 = "~/bin/iperf3"\n')
    home = settings()["store"].parent
    assert (home / "r.sqlite").is_absolute()
    assert settings()["programs"] == {"iperf3": f"{home}/bin/iperf3"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('unit = "bytes"', 'unit: unknown key\ndid you mean "units"?'),
        ('units = "bites"', 'units: "bites" is none of bits, bytes, si and iec'),
        ('store = "runs.sqlite"', "store: is not an absolute path"),
        ('[programs]\niperf3 = "bin/iperf3"', "programs: is not an absolute path"),
        ("theme = 1", "theme: is not a string"),
        ("keys = 1", "keys: is not a table"),
    ],
)
def test_a_wrong_setting_is_named_with_its_line(tmp_path, monkeypatch, text, said):
    file = write(tmp_path / "mine.toml", f"\n{text}\n")
    monkeypatch.setenv("BENCHCTL_SETTINGS", str(file))
    with pytest.raises(ProfileError) as caught:
        settings()
    assert f"{caught.value.message}\n{caught.value.hint}".strip() == f"{file}:2: {said}"


def test_a_named_file_that_is_missing_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setenv("BENCHCTL_SETTINGS", str(tmp_path / "none.toml"))
    with pytest.raises(UsageError, match=r"BENCHCTL_SETTINGS: .*none\.toml: no such file"):
        settings()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, 'theme = "nord"\n'),
        ('units = "iec" # mine\n[keys]\n', 'theme = "nord"\nunits = "iec" # mine\n[keys]\n'),
        ('# mine\ntheme = "x"\n[keys]\n', '# mine\ntheme = "nord"\n[keys]\n'),
    ],
)  # fmt: skip
def test_a_setting_is_remembered_and_all_else_in_the_file_stays(file, before, after):
    if before is not None:
        write(file, before)
    remember("theme", "nord")
    assert file.read_text() == after
    assert settings()["theme"] == "nord"
