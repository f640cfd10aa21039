"""-o: a path is checked before anything is measured, and a file is whole or as it was."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from store.store_support import measured_run
from waiting import COMMAND_S

from benchctl.cli.shared.options import format_for
from benchctl.errors import UsageError
from benchctl.report.output.output import Output

OK = '[flows.main]\nbackend = "toy"\n[axes]\nplan = ["ok"]\n'
FAIL = OK.replace("ok", "fail") + "[run]\nattempts = 1\n"


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("there", "-o there: Is a directory"),
        ("gone/r.json", "-o gone/r.json: No such file or directory"),
        ("p.toml/r.json", "-o p.toml/r.json: Not a directory"),
    ],
)
@pytest.mark.parametrize("args", [[], ["--format", "json"], ["--events"]])
def test_a_file_that_cannot_be_written_is_refused_before_anything_is_measured(
    benchctl, path, said, args
):
    (benchctl.directory / "there").mkdir()
    result = benchctl("run", benchctl.profile(OK), "-o", path, *args)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.splitlines()[0] == f"benchctl: {said}"
    assert not benchctl.store.exists()
    assert sorted(file.name for file in benchctl.directory.iterdir()) == ["p.toml", "there"]


def test_an_ending_that_no_format_has_is_refused_unless_the_format_is_named(benchctl):
    profile = benchctl.profile(OK)
    result = benchctl("run", profile, "-o", "res.xlsx")
    assert result.returncode == 2
    assert "-o res.xlsx: no format has the extension .xlsx" in result.stderr
    assert not benchctl.store.exists()
    assert benchctl("run", profile, "-q", "-o", "res.dat", "--format", "csv").returncode == 0


def test_resume_and_export_refuse_the_same(benchctl):
    benchctl("run", benchctl.profile(FAIL), "-q")
    for args in (["export"], ["export", "--samples"], ["resume"]):
        result = benchctl(args[0], "last", *args[1:], "-o", "res.xlsx")
        assert result.returncode == 2, args
        assert "no format has the extension .xlsx" in result.stderr
    refused = benchctl("export", "--samples", "-o", "samples.json")
    assert (refused.returncode, "CSV only" in refused.stderr) == (2, True)
    picture = benchctl("tui", "--screen", "history", "--screenshot", "x.png")
    assert (picture.returncode, "a picture ends in .svg or .txt" in picture.stderr) == (2, True)
    nowhere = benchctl("tui", "--screen", "history", "--screenshot", "gone/x.svg")
    assert (nowhere.returncode, "--screenshot gone/x.svg: No such file" in nowhere.stderr) == (
        2, True,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "args"),
    [
        (OK.replace('"ok"', '"ok", "lucky"'), ["run", "p.toml"]),
        (OK, ["run", "p.toml", "--repeat", "2"]),
        (OK + '[run]\nrepeats = { until = "2%", of = "throughput_bps" }\n', ["run", "p.toml"]),
        (OK, ["quick", "192.0.2.1", "--backend", "simpleperf"]),
    ],
)
def test_a_form_of_one_trial_is_refused_for_several_before_anything_is_measured(
    benchctl, text, args
):
    benchctl.profile(text)
    refused = benchctl(*args, "-o", "r.flent.gz")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "a file of flent holds one trial" in refused.stderr
    assert sorted(file.name for file in benchctl.directory.iterdir()) == ["p.toml"]


def test_a_form_whose_library_is_missing_is_refused_before_anything_is_measured(monkeypatch):
    from benchctl.cli.shared.options import check_format
    from benchctl.errors import MissingError

    check_format("parquet", 3, None)
    monkeypatch.setattr("benchctl.report.exports.parquet.find_spec", lambda name: None)
    with pytest.raises(MissingError, match="needs pyarrow"):
        check_format("parquet", 3, None)


@pytest.mark.parametrize("words", ["plot last", "plot last --terminal", "report last"])
def test_a_picture_on_a_full_disk_says_where_the_measurements_are(benchctl, words):
    measured_run(benchctl.store, {1: (1e6, 2e6)})
    with Path("/dev/full").open("w") as full:
        told = benchctl.start(*words.split(), stdout=full)
    _, stderr = told.communicate(timeout=COMMAND_S)
    error, hint = stderr.splitlines()
    assert told.returncode == 4
    assert "cannot write the result to stdout: No space left on device" in error
    assert "plot and report write results again" in hint


def test_an_older_file_stays_until_the_new_one_is_whole_and_keeps_its_mode(benchctl):
    old = benchctl.directory / "r.json"
    old.write_text("of yesterday")
    old.chmod(0o640)
    assert benchctl("run", benchctl.profile("nonsense = 1"), "-o", "r.json").returncode == 2
    assert old.read_text() == "of yesterday"
    assert benchctl("run", benchctl.profile(OK), "-q", "-o", "r.json").returncode == 0
    assert json.loads(old.read_text())["run"]["status"] == "ok"
    assert stat.S_IMODE(old.stat().st_mode) == 0o640
    assert not list(benchctl.directory.glob(".benchctl-*"))


def test_a_link_stays_a_link(benchctl):
    far = benchctl.directory / "far.json"
    (benchctl.directory / "r.json").symlink_to(far)
    benchctl("run", benchctl.profile(OK), "-q", "-o", "r.json")
    assert (benchctl.directory / "r.json").is_symlink()
    assert json.loads(far.read_text())["run"]["status"] == "ok"


def test_events_have_their_name_from_the_first_on_and_any_ending(benchctl):
    (benchctl.directory / "events.log").write_text("of yesterday")
    process = benchctl.start("run", benchctl.profile(OK), "--events", "-o", "events.log")
    process.communicate(timeout=COMMAND_S)
    lines = (benchctl.directory / "events.log").read_text().splitlines()
    # A run that something else on this machine measures is a note.
    events = [event for line in lines if (event := json.loads(line)["event"]) != "note"]
    assert (events[0], events[-1]) == ("trial_started", "run_ended")


def test_a_device_is_written_in_place(benchctl):
    result = benchctl("run", benchctl.profile(OK), "-q", "-o", "/dev/stdout")
    assert "9.00 kbit/s" in result.stdout


def test_a_file_in_a_directory_that_takes_no_new_one_is_written_in_place(benchctl, monkeypatch):
    file = benchctl.directory / "r.txt"
    file.write_text("a long text of yesterday")
    opened = os.open

    def refuse(path, flags, *mode):
        if flags & os.O_CREAT:
            raise PermissionError(13, "Permission denied")
        return opened(path, flags, *mode)

    monkeypatch.setattr("benchctl.report.output.output.os.open", refuse)
    with Output(file) as out:
        out.write("short")
        assert file.read_text() == "a long text of yesterday"
        out.publish()
    assert file.read_text() == "short"
    with pytest.raises(Exception, match="Permission denied"):
        Output(benchctl.directory / "new.txt")


@pytest.mark.parametrize("command", ["run", "resume"])
def test_events_in_a_format_that_they_do_not_have_are_refused(benchctl, command):
    told = benchctl(command, benchctl.profile(OK), "--events", "--format", "csv")
    assert (told.returncode, told.stdout) == (2, "")
    assert "--events writes JSON lines, and not --format csv" in told.stderr
    assert not benchctl.store.exists()


def test_a_run_in_a_file_of_its_own_is_shown_by_the_files_name(benchctl):
    profile = benchctl.profile(OK)
    assert benchctl("run", profile, "-q", "-o", "one.sqlite").returncode == 0
    shown = benchctl("show").stdout
    benchctl.store.unlink()
    assert benchctl("show", "one.sqlite").stdout == shown
    assert benchctl("export", "./one.sqlite", "-o", "one.json").returncode == 0
    result = benchctl("show", "other.sqlite")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("benchctl: store other.sqlite: there are no runs yet\n")


def test_bytes_go_to_a_pipe_and_not_to_a_terminal(benchctl, monkeypatch):
    assert benchctl("run", benchctl.profile(OK), "-q").returncode == 0
    argv = [sys.executable, "-m", "benchctl", "export", "--format", "sqlite"]
    argv += ["--store", str(benchctl.store)]
    data = subprocess.run(argv, stdout=subprocess.PIPE, check=True).stdout
    assert data.startswith(b"SQLite format 3\0")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    with pytest.raises(UsageError, match="--format sqlite is not for a terminal"):
        format_for("sqlite", None)
    assert format_for("sqlite", Path("run.sqlite")) == "sqlite"


def test_a_result_can_go_to_a_device_that_cannot_be_cut():
    with Output(Path("/dev/null")) as output:
        output.write("nobody reads it\n")
        output.publish()
