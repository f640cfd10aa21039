"""``benchctl schedule``: what a person types, and one run for real."""

import json
import signal
import time

import pytest
from waiting import COMMAND_S

from benchctl.schedule.book import Book, Schedule
from benchctl.schedule.times import Recurrence

PROFILE = 'title = "t"\n[flows.main]\nbackend = "toy"\n'


def test_a_schedule_is_added_listed_and_removed(benchctl):
    benchctl.profile(PROFILE, "nightly.toml")
    words = ("--every", "6h", "--at", "02:30", "--zone", "Europe/Paris", "--set", "duration=1s")
    added = benchctl("schedule", "add", "nightly.toml", *words, "--jitter", "10min")
    assert (added.returncode, added.stdout) == (0, "nightly\n"), added.stderr
    assert added.stderr.startswith("next: ")
    (one,) = Book(benchctl.store).schedules().values()
    assert one.profile == str(benchctl.directory / "nightly.toml")
    assert one.options == ("--set", "duration=1s")
    listed = benchctl("schedule", "list").stdout.splitlines()
    assert "6h at 02:30 Europe/Paris" in listed[2]
    assert json.loads(benchctl("schedule", "list", "--json").stdout)["name"] == "nightly"
    assert len(benchctl("schedule", "next", "-n", "4").stdout.splitlines()) == 4
    assert benchctl("schedule", "remove", "nightly").stdout == "nightly\n"
    assert "no schedules" in benchctl("schedule", "list").stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--every", "5s"), "--every 5s: the least interval is 10 s"),
        (("--every", "7h", "--at", "2:00"), "needs an interval of whole days"),
        (("--every", "6h", "--at", "25:00"), '--at "25:00": no time of the day'),
        (("--every", "6h", "--at", "2:00", "--zone", "Foo/Bar"), '--zone "Foo/Bar" is not known'),
        (("--every", "6h", "--zone", "UTC"), "--zone needs --at"),
        (("--every", "6h", "--overlap", "run"), '--overlap "run": it is skip or queue'),
        (("--every", "6h", "--name", "a b"), '"a b" is no name of a schedule'),
        (("--every", "6h", "--keep", "90"), "--keep: "),
        (("--every", "6h", "--set", "color=1"), "color"),
    ],
)
def test_wrong_words_are_refused_in_one_line(benchctl, words, said):
    benchctl.profile(PROFILE)
    result = benchctl("schedule", "add", "p.toml", *words)
    assert result.returncode == 2
    assert said in result.stderr.splitlines()[0]
    assert not Book(benchctl.store).schedules()


def test_what_is_due_is_measured_and_told_of(benchctl, tmp_path):
    benchctl.profile(f"{PROFILE}[run]\nattempts = 1\n")
    # A scheduler runs anywhere, also where somebody else may write.
    (benchctl.directory / "msgspec.py").write_text("raise SystemExit('taken from here')")
    preferred = tmp_path / "settings.toml"
    preferred.write_text('tags = ["lab2"]\n')
    benchctl.environment["BENCHCTL_SETTINGS"] = str(preferred)
    told = benchctl.directory / "told"
    rule = Recurrence(3600.0, time.time() - 3605)
    Book(benchctl.store).add(
        Schedule("hourly", str(benchctl.directory / "p.toml"), rule,
                 options=("--set", "plan=fail"), notify=f"cat >> {told}")
    )  # fmt: skip
    done = benchctl("schedule", "run", "--due")
    assert done.returncode == 0, done.stderr
    entries = [json.loads(one) for one in benchctl("schedule", "log", "--json").stdout.splitlines()]
    assert [one["what"] for one in entries] == ["started", "run", "failing"]
    (run,) = map(json.loads, benchctl("runs", "--json").stdout.splitlines())
    assert run["id"] == entries[1]["run"]
    assert run["tags"] == ["schedule:hourly", "lab2"]
    assert json.loads(told.read_text()) == entries[2]
    assert "no luck today" in entries[2]["text"]
    assert len(benchctl("schedule", "log", "hourly").stdout.splitlines()) == 3
    assert benchctl("schedule", "log", "daily").returncode == 2
    again = benchctl("schedule", "run", "--due")
    assert (again.returncode, again.stdout) == (0, "")


def test_ctrl_c_ends_the_scheduler(benchctl):
    assert "there is no schedule" in benchctl("schedule", "run").stderr
    Book(benchctl.store).add(Schedule("daily", "p", Recurrence(86400.0, time.time())))
    process = benchctl.start("schedule", "run")
    assert process.stderr.readline().startswith("next: ")
    other = benchctl("schedule", "run")
    assert (other.returncode, "another process" in other.stderr) == (2, True)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=COMMAND_S)
    assert process.returncode == 130


def test_the_timer_of_systemd_runs_this_store(benchctl, tmp_path):
    store = tmp_path / 'a "50 %" $x.sqlite'
    made = benchctl(
        "schedule", "install", "--directory", str(tmp_path / "u"), "--store", str(store)
    )
    assert made.returncode == 0, made.stderr
    service, timer = (tmp_path / "u" / f"benchctl-schedule.{kind}" for kind in ("service", "timer"))
    assert made.stdout.split() == [str(service), str(timer)]
    (line,) = [one for one in service.read_text().splitlines() if one.startswith("ExecStart=")]
    assert line.endswith(f'"--store" "{tmp_path}/a \\"50 %%\\" $$x.sqlite"')
    assert "loginctl enable-linger" in made.stderr
