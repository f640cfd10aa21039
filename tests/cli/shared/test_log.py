"""``-v``, ``--log`` and ``--log-json``: which commands run shows, and how it is collected."""

import json

import pytest

PROFILE = '[flows.main]\nbackend = "toy"\n[axes]\nplan = ["ok", "refuse"]\n'


@pytest.fixture
def profile(benchctl):
    return benchctl.profile(PROFILE)


def test_every_command_is_shown_with_its_host_start_end_and_exit(benchctl, profile):
    told = benchctl("run", profile, "-v").stderr.splitlines()
    starts = [line for line in told if " starts: sh -c " in line]
    ends = [line for line in told if " ends with exit code " in line]
    assert len(starts) == len(ends) == 4  # twice a probe, and two trials
    assert all(" local " in line for line in starts + ends)
    assert sum(" ends with exit code 1 after " in line for line in ends) == 1


def test_without_v_nothing_is_shown_and_the_file_has_it_all(benchctl, profile):
    told = benchctl("run", profile, "--log", "log.txt")
    assert "starts" not in told.stderr
    text = (benchctl.directory / "log.txt").read_text()
    assert text.count(" starts: ") == text.count(" ends with ") == 4
    benchctl("run", profile, "--log", "log.txt")
    assert (benchctl.directory / "log.txt").read_text().startswith(text)


def test_a_collector_gets_json_lines_on_stderr_and_nothing_beside_them(benchctl, profile):
    told = benchctl("run", profile, "-q", "--log-json")
    entries = [json.loads(line) for line in told.stderr.splitlines()]
    assert [one["event"] for one in entries].count("ended") == 4
    assert {one["host"] for one in entries} == {"local"}
    assert all(one["time"][-6] in "+-" for one in entries)


def test_v_shows_only_what_this_run_adds_to_the_file(benchctl, profile):
    benchctl("run", profile, "--log", "log.txt")
    told = benchctl("run", profile, "--log", "log.txt", "-v").stderr
    assert told.count(" starts: ") == 4


def test_a_log_that_cannot_be_written_is_an_error_before_anything_runs(benchctl, profile):
    told = benchctl("run", profile, "--log", "none/log.txt")
    assert (told.returncode, benchctl.store.exists()) == (2, False)
    assert "none/log.txt: No such file or directory" in told.stderr


def test_nothing_is_left_in_the_directory_of_temporary_files(benchctl, profile, tmp_path_factory):
    temporary = tmp_path_factory.mktemp("temporary")
    benchctl.environment["TMPDIR"] = str(temporary)
    assert " starts: " in benchctl("run", profile, "-v").stderr
    assert list(temporary.iterdir()) == []
