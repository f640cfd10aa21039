"""``benchctl runs``: what it lists, and what it changes in the store."""

import json
import os
import signal
from contextlib import closing
from datetime import datetime, timedelta

import pytest
from store.store_support import new_run
from waiting import COMMAND_S, wait_until

from benchctl.store.manage import read_tags
from benchctl.store.read import Reader
from benchctl.store.record import Recorder
from benchctl.visible import width_of

HEAD = "run                     when              profile                  trials  status"


@pytest.fixture
def names(benchctl):
    """Return the names of three runs that were made in the store: two ok, and one failed."""
    made = []
    for status in ("ok", "failed", "ok"):
        run_id, name = new_run(benchctl.store)
        with closing(Recorder(benchctl.store, run_id)) as recorder:
            recorder.update_run(status="running")
            recorder.update_run(status=status)
        made.append(name)
    return made


def listed(benchctl, *options):
    result = benchctl("runs", *options)
    assert result.returncode == 0, result.stderr
    return [line.split()[0] for line in result.stdout.splitlines()[1:]]


def test_without_a_command_all_runs_are_listed_newest_first(benchctl, names):
    result = benchctl("runs")
    assert result.stdout.splitlines()[0] == HEAD
    assert listed(benchctl) == names[::-1]
    assert [json.loads(line)["id"] for line in benchctl("runs", "--json").stdout.splitlines()] == (
        names[::-1]
    )


def test_names_of_any_width_leave_the_columns_in_line(benchctl, names):
    new_run(benchctl.store, profile="東京の測定と大阪の測定とその間の道")
    new_run(benchctl.store, profile="a-profile-of-more-than-twenty-two-letters")
    head, *lines = benchctl("runs").stdout.splitlines()
    assert len(lines) == 5
    begins = [head.index(word) for word in ("when", "profile", "trials")]
    for line in lines:
        cells = "".join(letter * width_of(letter) for letter in line)
        assert [cells[begin - 2 : begin] for begin in begins[:2]] == ["  ", "  "]
        assert cells[begins[2] + len("trials") - 2 :][:4] == " 1  "


def test_tags_are_given_by_run_and_by_runs_tag_and_chosen_by_a_unique_part(benchctl, names):
    profile = benchctl.profile('[flows.main]\nbackend = "toy"\n')
    assert benchctl("run", profile, "-q", "--tag", "nightly, wifi", "--tag", "5G").returncode == 0
    told = benchctl("runs", "tag", names[0][-6:], "wired", "nightly")
    assert told.stdout.split() == ["wired", "nightly"]
    assert len(listed(benchctl, "--tag", "night")) == 2
    assert listed(benchctl, "--tag", "night", "--tag", "wire") == [names[0]]
    lines = benchctl("runs").stdout.splitlines()
    assert lines[0] == f"{HEAD}       tags"
    assert lines[1].endswith("ok           nightly, wifi, 5G")
    assert json.loads(benchctl("runs", "--json", "--tag", "5G").stdout)["tags"] == [
        "nightly", "wifi", "5G",
    ]  # fmt: skip
    assert names[0] in benchctl("show", "wire").stdout
    several = benchctl("show", "night").stderr
    assert 'the tag "nightly" is that of 2 runs' in several
    assert benchctl("runs", "tag", names[0], "--remove", "wire").stdout == "nightly\n"


def test_an_abbreviation_that_is_not_unique_is_rejected_with_what_it_may_mean(benchctl, names):
    benchctl("runs", "tag", names[0], "wired", "wireless")
    for args in (("--tag", "wire"), ("tag", names[0], "--remove", "wire"), ("stop", "wire")):
        result = benchctl("runs", *args)
        assert result.returncode == 2
        assert '"wire" matches 2 tags\n  such as wired, wireless' in result.stderr
    assert 'no tag "x"\n  tags are: wired, wireless' in benchctl("runs", "--tag", "x").stderr
    assert "matches 3 runs" in benchctl("runs", "tag", names[0][:4]).stderr


def test_runs_are_chosen_by_profile_time_and_failure(benchctl, names):
    assert listed(benchctl, "--failed") == [names[1]]
    assert listed(benchctl, "--profile", "p") == names[::-1]
    assert 'no profile "q"' in benchctl("runs", "--profile", "q").stderr
    # Their time in the store is that of the tests' clock, far in the past.
    with closing(Reader(benchctl.store)) as reader:
        begun = datetime.fromtimestamp(reader.outlines()[0].created_time)
    for when, count in (
        (begun.isoformat(), 3),
        ((begun + timedelta(seconds=1)).isoformat(), 0),
        (begun.date().isoformat(), 3),
        ("1h", 0),
        ("9999d", 3),
    ):
        assert len(listed(benchctl, "--since", when)) == count, when
    result = benchctl("runs", "--since", "5m")
    assert result.returncode == 2
    assert "neither a date nor a duration" in result.stderr


def test_deleted_runs_are_gone_and_a_wrong_name_deletes_none(benchctl, names):
    assert benchctl("runs", "delete", names[0], "nonsense", "--yes").returncode == 2
    assert listed(benchctl) == names[::-1]
    asked = benchctl("runs", "delete", names[0])
    assert (asked.returncode, listed(benchctl)) == (2, names[::-1])
    assert "--yes" in asked.stderr
    result = benchctl("runs", "delete", "last", names[2], names[0], "--yes")
    assert result.stdout.split() == [names[2], names[0]]
    assert listed(benchctl) == [names[1]]


def test_a_run_in_progress_is_stopped_and_not_deleted(benchctl):
    text = '[flows.main]\nbackend = "toy"\nplan = "hang"\n[run]\ndeadline = "10min"\n'
    process = benchctl.start("run", benchctl.profile(text))
    try:
        wait_until(lambda: benchctl.store.exists() and "running" in benchctl("runs").stdout)
        result = benchctl("runs", "delete", "last", "--yes")
        assert result.returncode == 2
        assert "is in progress" in result.stderr
        assert benchctl("runs", "stop").returncode == 0
        process.communicate(timeout=COMMAND_S)
    finally:
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
    assert "interrupted" in benchctl("runs").stdout
    assert "is not in progress" in benchctl("runs", "stop").stderr
    assert benchctl("runs", "delete", "last", "--yes").returncode == 0


def test_options_of_the_list_do_not_get_lost_before_a_command(benchctl, names):
    result = benchctl("runs", "--store", "elsewhere.sqlite", "delete", "last", "--yes")
    assert result.returncode == 2
    assert "--store is an option of the list, not of delete" in result.stderr
    assert listed(benchctl) == names[::-1]


def test_a_tag_has_no_comma_no_space_around_it_and_occurs_once():
    assert read_tags([" a ,b", "", "b", "c d"]) == ("a", "b", "c d")
