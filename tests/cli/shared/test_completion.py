"""Completion in real shells: bundled names, runs, and files."""

import os
import pty
import select
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from store.store_support import measured_run, new_run
from waiting import COMMAND_S

SCRIPTS = {
    "bash": ("--norc", "-i", "bind 'set show-all-if-ambiguous on'; source complete.bash"),
    "zsh": ("-f", "-i", "autoload -U compinit; compinit -u -D; source complete.zsh"),
}


@pytest.fixture
def shell_environment(tmp_path, monkeypatch):
    """Work in a directory with a file and a directory whose names begin as names of ours do."""
    (tmp_path / "quiet, and my.toml").touch()
    (tmp_path / "mine.toml").touch()
    (tmp_path / "quarry").mkdir()
    monkeypatch.chdir(tmp_path)
    programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {
        **os.environ, "PATH": programs, "TERM": "dumb", "HOME": str(tmp_path), "COLUMNS": "200",
        "BENCHCTL_STORE": str(tmp_path / "runs.sqlite"), "XDG_CONFIG_HOME": str(tmp_path),
    }  # fmt: skip


@contextmanager
def terminal(shell, environment):
    """Run a shell with our completion on a terminal; yields a function that types and reads."""
    *flags, setup = SCRIPTS[shell]
    script = subprocess.run(
        ["benchctl", "--completion", shell], env=environment, capture_output=True, check=True
    )
    Path(f"complete.{shell}").write_bytes(script.stdout)
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [shell, *flags], env=environment, stdin=slave, stdout=slave, stderr=slave,
        start_new_session=True,
    )  # fmt: skip
    os.close(slave)

    def type_until(text, *wanted):
        os.write(master, text.encode())
        shown, end_s = "", time.monotonic() + COMMAND_S
        while not all(one in shown for one in wanted):
            left_s = end_s - time.monotonic()
            assert select.select([master], [], [], left_s)[0], shown
            shown += os.read(master, 65536).decode()
        return shown

    try:
        type_until(f"{setup}; echo rea''dy\n", "ready")
        yield type_until
    finally:
        process.kill()
        process.wait()
        os.close(master)


@pytest.mark.parametrize(
    "shell", [pytest.param(name, marks=pytest.mark.tool(name)) for name in SCRIPTS]
)
def test_names_and_files_are_offered_together(shell_environment, shell):
    with terminal(shell, shell_environment) as type_until:
        shown = type_until("benchctl lab show m\t", "moving-away", "mine.toml")
        assert "dumbbell" not in shown
        type_until("\025benchctl run --lab m\t", "moving-away", "mine.toml")
        type_until("\025benchctl plan qu\t", "quickstart", "quiet", "quarry")
        # A file alone is completed as the shell completes files.
        type_until("\025benchctl plan quie\t", r"\ and\ my.toml")


@pytest.fixture
def fish(shell_environment):
    def fish(line):
        script = f"benchctl --completion fish | source; complete -C '{line}'"
        result = subprocess.run(
            ["fish", "-c", script], env=shell_environment, capture_output=True, text=True,
            check=True,
        )  # fmt: skip
        return [one.split("\t") for one in result.stdout.splitlines()]

    return fish


@pytest.mark.tool("fish")
def test_fish_offers_names_and_files_together(fish):
    offered = [name for name, *_ in fish("benchctl lab show ")]
    assert {"dumbbell", "mine.toml", "quarry/"} <= set(offered)
    assert [name for name, *_ in fish("benchctl plan qui")] == ["quickstart", "quiet, and my.toml"]
    assert [name for name, *_ in fish("benchctl export -o m")] == ["mine.toml"]


@pytest.mark.tool("fish")
def test_fish_shows_a_short_description_with_its_commas(fish):
    described = dict(fish("benchctl "))
    assert described["runs"] == "List all runs, newest first."
    assert {"run", "plan", "lab"} <= described.keys()
    assert all(len(text) <= 45 for text in described.values())
    assert dict(fish("benchctl plan --"))["--lab"] == "Run in this lab; none: in the real network."


@pytest.fixture
def offered(benchctl):
    """Return what is offered for the last word of a line, but files: what every shell asks for."""

    def offered(line):
        words = {
            "COMP_WORDS": f"benchctl {line}", "COMP_CWORD": str(line.count(" ") + 1),
            "_BENCHCTL_COMPLETE": "complete_bash",
        }  # fmt: skip
        benchctl.environment |= words
        found = [one.split("\t") for one in benchctl().stdout.splitlines()]
        return [name for name, *told in found if name and told != ["/"]]

    return offered


def test_runs_are_offered_where_a_run_is_meant(offered, benchctl):
    _, first = new_run(benchctl.store)
    second = measured_run(benchctl.store, {1: [1e6]}, tags=["2nd", "wired"])
    lines = ("show 2", "export 2", "resume 2", f"compare {first} 2", "compare last --against 2",
             "baseline set 2")  # fmt: skip
    for line in lines:
        assert set(offered(line)) == {first, second, "2nd"}, line


def test_profiles_that_were_measured_are_offered(offered, benchctl):
    for profile in ("atlas", "quay"):
        measured_run(benchctl.store, {1: [1e6]}, profile=profile)
    assert offered("baseline show ") == ["atlas", "quay"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("runs --profile ", {"quay"}),
        ("tui --screen ", {"plan", "live", "summary", "history", "compare"}),
        ("tui --theme nord", {"nord"}),
        ("lab check --emulator ", {"auto", "kernel", "user"}),
        ("lab exec portfolio h", {f"h{number}" for number in range(1, 10)}),
        ("lab exec none h", set()),
        ("serve --tool ", {"iperf2", "iperf3", "owamp", "owping", "simpleperf"}),
    ],
)
def test_options_offer_what_they_take(offered, benchctl, line, expected):
    measured_run(benchctl.store, {1: [1e6]}, profile="quay")
    assert set(offered(line)) == expected


def test_screens_offer_profiles_and_runs(offered, benchctl):
    name = measured_run(benchctl.store, {1: [1e6]})
    assert {name, "quickstart"} <= {*offered("tui ")}
    assert offered("tui --replay ") == [name]


PAIRS = """
[hosts]
paris = { ssh = "paris" }
tokyo = { ssh = "tokyo" }
[servers.lima]
host = "192.0.2.1"
[flows.bulk]
backend = "simpleperf"
[axes]
pair = { mesh = ["paris", "tokyo"] }
streams = [1, 4]
"""


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("run mesh.toml --only pair=p", {"pair=paris:tokyo"}),
        ("plan mesh.toml --only ", {
            "pair=paris:tokyo", "pair=tokyo:paris", "streams=1", "streams=4",
        }),
        ("run mesh.toml --set pair=t", {"pair=tokyo:paris"}),
        ("doctor --hosts mesh.toml --set flows.bulk.from=", {
            f"flows.bulk.from={name}" for name in ("local", "paris", "tokyo")
        }),
        ("plan mesh.toml --set flows.bulk.to=l", {"flows.bulk.to=lima", "flows.bulk.to=local"}),
        ("plan nothing.toml --only ", set()),
    ],
)  # fmt: skip
def test_the_hosts_and_pairs_of_a_profile_are_offered(offered, benchctl, line, expected):
    benchctl.profile(PAIRS, "mesh.toml")
    assert set(offered(line)) == expected


@pytest.mark.parametrize(
    "shell", [pytest.param(name, marks=pytest.mark.tool(name)) for name in SCRIPTS]
)
def test_values_with_signs_at_which_a_shell_splits_words_are_completed(
    shell_environment, tmp_path, shell
):
    (tmp_path / "mesh.toml").write_text(PAIRS)
    with terminal(shell, shell_environment) as type_until:
        type_until("benchctl plan mesh.toml --only pair=p\t", "pair=paris:tokyo")
        type_until("\025benchctl plan mesh.toml --only pair=tokyo:\t", "pair=tokyo:paris")
        type_until("\025benchctl plan mesh.toml --set flows.bulk.to=li\t", "flows.bulk.to=lima")
