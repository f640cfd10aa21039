"""What the settings do to the commands, and how they are shown."""

import json
import os
from pathlib import Path

import pytest

from benchctl.settings import UserSettings

PROFILE = '[flows.main]\nbackend = "toy"\n[axes]\nplan = ["ok"]\n'


@pytest.fixture
def settings_file(benchctl):
    path = benchctl.directory / "settings.toml"
    path.write_text("")
    benchctl.environment["BENCHCTL_SETTINGS"] = str(path)
    return path


def test_each_setting_is_shown_with_where_it_comes_from(benchctl, settings_file):
    settings_file.write_text('theme = "nord"\nunits = "bytes"\n')
    told = benchctl("settings").stdout.splitlines()
    assert told[0] == f"file {settings_file}"
    assert [line.split() for line in told[1:3]] == [
        ["store", str(benchctl.store), "BENCHCTL_STORE"],
        ["units", "bytes", f"{settings_file}:2"],
    ]
    entries = [json.loads(line) for line in benchctl("settings", "--json").stdout.splitlines()]
    (theme,) = (one for one in entries if one["name"] == "theme")
    assert theme == {"name": "theme", "value": "nord", "origin": f"{settings_file}:1"}


def test_a_wrong_setting_ends_a_command_with_its_line(benchctl, settings_file):
    settings_file.write_text('theme = "nrod"\n')
    told = benchctl("settings")
    assert (told.returncode, told.stdout) == (2, "")
    assert told.stderr.splitlines() == [
        f'benchctl: {settings_file}:1: theme: there is no "nrod"', '  did you mean "nord"?',
    ]  # fmt: skip


def test_the_store_of_the_settings_is_used(benchctl, settings_file):
    del benchctl.environment["BENCHCTL_STORE"]
    store = benchctl.directory / "there.sqlite"
    settings_file.write_text(f'store = "{store}"\n')
    assert benchctl("run", benchctl.profile(PROFILE)).returncode == 0
    assert store.exists()


def test_units_are_those_of_the_option_else_of_the_settings(benchctl, settings_file):
    benchctl("run", benchctl.profile(PROFILE), "-q")
    assert "9.00 kbit/s" in benchctl("show").stdout
    settings_file.write_text('units = "bytes"\n')
    assert "1.12 kB/s" in benchctl("show").stdout
    assert "8.79 Kibit/s" in benchctl("show", "--units", "iec").stdout
    # Files for programs have SI base units whatever is shown to people.
    assert '"mean": 9000.0' in benchctl("export", "--format", "json").stdout


def test_a_wrong_unit_is_a_usage_error(benchctl, settings_file):
    told = benchctl("show", "--units", "bites")
    assert told.returncode == 2
    assert '"bites" is none of bits, bytes, si and iec' in told.stderr


def test_a_program_is_taken_from_where_the_settings_say(benchctl, settings_file):
    ours = benchctl.directory / "our-sh"
    ours.write_text('#!/bin/sh\nexec /bin/sh "$@"\n')
    ours.chmod(0o755)
    settings_file.write_text(f'[programs]\nsh = "{ours}"\n')
    profile = benchctl.profile(PROFILE)
    assert f"{ours} -c" in benchctl("plan", profile).stdout
    assert benchctl("run", profile).returncode == 0
    assert f"$ {ours} -c" in benchctl("show", "--trials").stdout
    ours.unlink()
    told = benchctl("run", profile)
    assert (told.returncode, f"no program {ours}" in told.stderr) == (3, True)


def test_a_folder_that_is_closed_to_this_user_has_no_settings(monkeypatch):
    def closed(path, **_):
        raise PermissionError(13, "Permission denied", path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "stat", closed)
        found = UserSettings(Path("/root/.config/benchctl/settings.toml"))
    assert found.find("theme").origin == "default"
