"""``benchctl archive``, and the archive in other commands, as typed."""

import json
import time

import pytest
from archive.archive_support import user_of
from cli.conftest import Benchctl
from schedule.scheduled import HOUR_S, Scheduled
from store.store_support import FIVE_MBIT, measured_run, new_run

from benchctl.archive.connection import open_archive
from benchctl.archive.pull import archived_runs
from benchctl.archive.schema import READER
from benchctl.schedule.book import Book, Schedule
from benchctl.schedule.times import Recurrence
from benchctl.store.captures import captures_of
from benchctl.store.manage import set_tags

pytestmark = pytest.mark.postgres
PROFILE = 'title = "t"\n[flows.main]\nbackend = "toy"\n'
AWAY = "postgresql://u:secret@127.0.0.1:1/bench"


@pytest.fixture
def typed(tmp_path, fork_server, archive_url):
    """The command line of somebody whose settings name an empty archive."""
    found = Benchctl(tmp_path, server=fork_server)
    found.environment["BENCHCTL_ARCHIVE"] = archive_url
    return found


def names_in(url):
    with open_archive(url) as archive:
        return [run.name for run in archived_runs(archive)]


def test_an_archive_is_made_once(typed, new_database):
    typed.environment["BENCHCTL_ARCHIVE"] = new_database()
    made, again = typed("archive", "init"), typed("archive", "init")
    assert made.returncode == again.returncode == 0, made.stderr
    assert made.stdout.endswith(": made\n")
    assert "GRANT benchctl_writer TO" in made.stderr
    assert again.stdout.endswith(": is there already\n")


def test_runs_are_pushed_listed_and_pulled(typed, tmp_path):
    names = [measured_run(typed.store, {1: FIVE_MBIT}, now=1e9 + n, intervals=2) for n in (1, 2)]
    new_run(typed.store)  # never begun
    pushed = typed("archive", "push")
    assert pushed.stdout == "".join(f"{name}  new\n" for name in names), pushed.stderr
    assert "has every run that has ended" in typed("archive", "push").stderr
    assert typed("archive", "push", names[0]).stdout == f"{names[0]}  there already\n"
    set_tags(typed.store, 1, ["lab"])
    listed = typed("archive", "list")
    assert listed.stdout.splitlines()[2].split()[:3] == ["2001-09", "2", "20"]
    assert listed.stderr == "1 run of this store to push: benchctl archive push\n"
    assert typed("archive", "push").stdout == f"{names[0]}  replaced\n"
    other = ("--store", str(tmp_path / "other.sqlite"))
    assert typed("archive", "pull", "lab", "last", *other).stdout.split() == names
    assert typed("archive", "pull", "lab", *other).stdout == f"{names[0]}  there already\n"
    assert typed("show", names[0], *other).stdout == typed("show", names[0]).stdout


def test_packets_are_said_to_stay(typed):
    name = measured_run(typed.store, {1: FIVE_MBIT})
    captures_of(typed.store, name).mkdir(parents=True)
    pushed = typed("archive", "push")
    assert f"{name}: its packets stay in " in pushed.stderr
    assert "they are not archived" in pushed.stderr


def test_runs_and_trend_say_the_same_of_the_archive(typed):
    for n in range(24):
        rates = [value * (1 if n < 12 else 0.5) for value in FIVE_MBIT]
        measured_run(typed.store, {1: rates}, now=1e9 + 3600 * n, profile="loop", tags=[f"n{n}"])
    measured_run(typed.store, {1: (1e6, None)}, now=1e9, profile="other")
    new_run(typed.store, profile="loop", now=1e9 + 1e6)
    assert len(typed("archive", "push").stdout.splitlines()) == 25
    archive = ("--archive", "settings")
    for words, told in (
        (("trend", "loop"), "went from 94.9 Mbit/s"), (("trend", "other", "--json"), "too few"),
        (("runs", "--tag", "n7"), "n7"), (("runs", "--failed", "--json"), "other"),
    ):  # fmt: skip
        here, there = typed(*words), typed(*words, *archive)
        assert here.returncode == there.returncode == 0, there.stderr
        assert there.stdout == here.stdout
        assert told in there.stdout
    assert typed("trend", "nothing", *archive).returncode == 2


def test_a_run_is_pushed_when_it_has_ended_and_ends_as_ever_if_the_archive_is_away(typed):
    typed.profile(PROFILE)
    typed.environment["BENCHCTL_PUSH"] = "1"
    done = typed("run", "p.toml", "--quiet")
    assert done.returncode == 0, done.stderr
    url = typed.environment["BENCHCTL_ARCHIVE"]
    assert len(names_in(url)) == 1
    typed.environment["BENCHCTL_ARCHIVE"] = AWAY
    done = typed("run", "p.toml", "--quiet")
    assert done.returncode == 0
    assert "is not archived: archive bench on 127.0.0.1" in done.stderr
    assert "push it later: benchctl archive push" in done.stderr
    assert "secret" not in done.stderr
    typed.environment["BENCHCTL_ARCHIVE"] = url
    assert len(typed("archive", "push").stdout.splitlines()) == 1


def test_a_password_is_neither_kept_in_the_settings_nor_shown(typed, tmp_path):
    typed.environment["BENCHCTL_ARCHIVE"] = AWAY
    shown = typed("settings")
    assert "postgresql://u:***@127.0.0.1:1/bench" in shown.stdout
    assert "secret" not in shown.stdout + typed("settings", "--json").stdout
    preferred = tmp_path / "settings.toml"
    typed.environment["BENCHCTL_SETTINGS"] = str(preferred)
    for url in (AWAY, "host=db password = 'se cret'", "postgresql:///x?sslpassword=secret&a=b"):
        preferred.write_text(f'archive = "{url}"\n')
        refused = typed("settings")
        assert refused.returncode == 2
        assert "has a password: write that to ~/.pgpass" in refused.stderr
        assert "cret" not in refused.stderr + refused.stdout


def test_what_is_missing_is_one_line(typed):
    del typed.environment["BENCHCTL_ARCHIVE"]
    assert "no archive is named" in typed("archive", "list").stderr
    assert "neither" not in typed("archive", "dashboard").stderr
    offload = ("archive", "offload", "-o", "nowhere", "--before")
    assert '--before "May": no month' in typed(*offload, "May").stderr
    assert "there is no such folder" in typed(*offload, "2026-01").stderr


def test_without_psycopg_the_commands_say_what_to_install(typed):
    (typed.directory / "psycopg.py").write_text("raise ImportError")
    typed.environment["PYTHONPATH"] = str(typed.directory)
    typed.server = None
    refused = typed("archive", "list")
    assert refused.returncode == 3
    assert 'pip install "benchctl[archive]"' in refused.stderr


def scheduled(typed, monkeypatch, tmp_path, **more):
    """A schedule of a machine whose settings push its runs."""
    monkeypatch.setenv("BENCHCTL_PUSH", "1")
    monkeypatch.setenv("BENCHCTL_ARCHIVE", typed.environment["BENCHCTL_ARCHIVE"])
    found = Scheduled(typed.store)
    found.add(**more)
    return found


def test_a_schedule_keeps_each_run_that_the_archive_lacks(typed, monkeypatch, tmp_path):
    found = scheduled(typed, monkeypatch, tmp_path, keep_s=1.5 * HOUR_S)
    url = typed.environment["BENCHCTL_ARCHIVE"]
    found.wait(3 * HOUR_S + 100)
    assert len(names_in(url)) == 3
    assert len(typed("runs", "--json").stdout.splitlines()) == 2
    monkeypatch.setenv("BENCHCTL_ARCHIVE", AWAY)
    found.wait(2 * HOUR_S)
    assert len(typed("runs", "--json").stdout.splitlines()) == 4
    problems = [one.text for one in found.book.entries() if one.what.value == "problem"]
    assert len(problems) == 2
    assert "secret" not in "".join(problems)
    with user_of(url, READER) as theirs:
        monkeypatch.setenv("BENCHCTL_ARCHIVE", theirs)
        found.wait(HOUR_S)
    assert len(typed("runs", "--json").stdout.splitlines()) == 5
    assert "permission denied" in found.book.entries()[-1].text
    assert [one.what.value for one in found.book.entries()][-3:] == ["started", "run", "problem"]
    monkeypatch.setenv("BENCHCTL_ARCHIVE", url)
    found.wait(HOUR_S)
    assert len(names_in(url)) == 7
    assert len(typed("runs", "--json").stdout.splitlines()) == 2


def test_a_scheduled_run_is_pushed_once(typed):
    typed.profile(PROFILE)
    typed.environment["BENCHCTL_PUSH"] = "1"
    rule = Recurrence(3600.0, time.time() - 3605)
    Book(typed.store).add(Schedule("hourly", str(typed.directory / "p.toml"), rule))
    done = typed("schedule", "run", "--due")
    assert done.returncode == 0, done.stderr
    (run,) = map(json.loads, typed("runs", "--json").stdout.splitlines())
    assert names_in(typed.environment["BENCHCTL_ARCHIVE"]) == [run["id"]]
    entries = [
        json.loads(one)["what"]
        for one in typed("schedule", "log", "--json").stdout.split("\n")[:-1]
    ]
    assert entries == ["started", "run"]
