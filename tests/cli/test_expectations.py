"""Expectations on the command line: exit codes, ``--strict``, ``--junit``, and the baseline."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from store.store_support import FIVE_MBIT, measured_run

from benchctl.run.condition import Relative
from benchctl.run.planned import Expectation, Settings

TOY = """
[flows.main]
backend = "toy"
[run]
backoff = "10ms"
repeats = {repeats}
[[expect]]
{expect}
"""
MET = 'metric = "throughput_bps"\nat_least = "9kbit"'
NOT_MET = 'metric = "throughput_bps"\nat_least = "1Mbit"'
WARNING = f'{NOT_MET}\nseverity = "warning"'
UNDECIDED = 'metric = "throughput_bps"\nwithin = "10%"\nof = "baseline"'


def profile(benchctl, expect, repeats=1):
    return benchctl.profile(TOY.format(expect=expect, repeats=repeats))


def results(file):
    cases = ET.parse(file).getroot().findall("testsuite/testcase")
    return [[child.tag for child in case] for case in cases]


@pytest.mark.parametrize(
    ("expect", "plain", "strict"),
    [(MET, 0, 0), (NOT_MET, 1, 1), (WARNING, 0, 1), (UNDECIDED, 0, 1)],
    ids=["met", "not met", "warning", "undecided"],
)
def test_the_exit_code_depends_on_severity_and_strictness(benchctl, expect, plain, strict):
    name = profile(benchctl, expect)
    assert benchctl("run", name, "-q").returncode == plain
    assert benchctl("run", name, "-q", "--strict").returncode == strict


def test_what_is_not_met_or_undecided_is_named_with_its_figures(benchctl):
    both = f"{NOT_MET}\n[[expect]]\n{UNDECIDED}\n[[expect]]\nevents = 'no event'"
    shown = benchctl("run", profile(benchctl, both), "-q").stdout
    at = "throughput_bps of main at its point (9.00 kbit/s"
    assert f"expectation not met: {at}, at least 1.00 Mbit/s)\n" in shown
    assert f"expectation undecided: {at}, no baseline value is known)\n" in shown
    short = "(none in the only repeat, 1 too short to show any: under 20 intervals)"
    assert f"expectation undecided: no event in main at its point {short}\n" in shown
    entries = json.loads(benchctl("export", "--format", "json").stdout)["expectations"]
    assert [(one["met"], one["answer"]) for one in entries] == [
        (False, "not met"), (None, "undecided"), (None, "undecided"),
    ]  # fmt: skip


def test_a_run_is_checked_against_its_baseline(benchctl):
    name = profile(benchctl, UNDECIDED, repeats=3)
    assert benchctl("run", name, "-q", "--tag", "baseline").returncode == 0
    assert benchctl("run", name, "-q", "--strict").returncode == 0  # within 10 % of it
    (entry,) = json.loads(benchctl("export", "--format", "json").stdout)["expectations"]
    assert "at least 0.9 * baseline: 8.10 kbit/s" in entry["why"]
    assert benchctl("runs", "delete", "baseline", "--yes").returncode == 0
    assert benchctl("run", name, "-q").returncode == 0
    assert "no baseline value is known" in benchctl("show").stdout


def test_a_run_has_to_be_shown_not_to_be_worse(benchctl):
    wanted = 'metric = "throughput_bps"\nnot_worse_than = "5%"'
    name = profile(benchctl, wanted, repeats=3)
    assert benchctl("run", name, "-q", "--tag", "baseline").returncode == 0  # undecided
    assert benchctl("run", name, "-q").returncode == 0
    result = benchctl("run", profile(benchctl, wanted), "-q", "--junit", "cases.xml")
    assert "at least 0.95 * baseline: 8.55 kbit/s, a worse mean cannot be excluded" in result.stdout
    assert (result.returncode, results(benchctl.directory / "cases.xml")) == (1, [["failure"]])


def test_expectations_go_to_a_file_for_ci_systems_in_the_end(benchctl):
    file = benchctl.directory / "cases.xml"
    name = profile(benchctl, f"{NOT_MET}\n[[expect]]\n{UNDECIDED}")
    assert benchctl("run", name, "-q", "--junit", "cases.xml").returncode == 1
    assert results(file) == [["failure"], ["skipped"]]
    assert benchctl("run", name, "-q", "--junit", "cases.xml", "--strict").returncode == 1
    assert results(file) == [["failure"], ["failure"]]
    assert benchctl("export", "-o", "stored.xml").returncode == 0
    assert results(benchctl.directory / "stored.xml") == [["failure"], ["skipped"]]


def test_it_is_written_at_the_end_of_a_run_that_is_watched_or_resumed(benchctl):
    text = TOY.format(expect=NOT_MET, repeats=1)
    name = benchctl.profile(text.replace("[run]", '[axes]\nplan = ["ok", "fail"]\n[run]'))
    assert benchctl("run", name, "--detach").returncode == 0
    file = benchctl.directory / "watched.xml"
    watched = benchctl("run", "--attach", "last", "-q", "--junit", "watched.xml")
    assert (watched.returncode, results(file)) == (1, [["error"], ["failure"]])
    (error,) = ET.parse(file).getroot().iter("error")
    assert "no luck today" in error.attrib["message"]
    resumed = benchctl("resume", "--failed", "-q", "--strict", "--junit", "resumed.xml")
    assert resumed.returncode == 1
    assert results(benchctl.directory / "resumed.xml") == [["error"], ["failure"]]


def test_a_failed_trial_is_an_error_there(benchctl):
    failing = benchctl.profile(
        '[flows.main]\nbackend = "toy"\nplan = "fail"\n[run]\nattempts = 1\n'
    )
    assert benchctl("run", failing, "-q", "--junit", "cases.xml").returncode == 1
    (error,) = ET.parse(benchctl.directory / "cases.xml").getroot().iter("error")
    assert "no luck today" in error.attrib["message"]


def test_a_file_that_cannot_be_written_is_rejected_before_anything_is_measured(benchctl):
    result = benchctl("run", profile(benchctl, MET), "--junit", "nowhere/cases.xml")
    assert result.returncode == 2
    assert result.stderr.startswith("benchctl: --junit nowhere/cases.xml: No such file")
    assert not benchctl.store.exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_reported_and_the_run_is_kept(benchctl):
    result = benchctl("run", profile(benchctl, MET), "-q", "--junit", "/dev/full")
    assert result.returncode == 4
    assert "cannot write /dev/full: No space left on device" in result.stderr
    assert "9.00 kbit/s" in benchctl("show").stdout


def test_strict_and_junit_exclude_detach(benchctl):
    for option in (["--strict"], ["--junit", "cases.xml"]):
        result = benchctl("run", profile(benchctl, MET), "--detach", *option)
        assert (result.returncode, option[0] in result.stderr) == (2, True)


def test_the_baseline_itself_and_one_of_another_profile_are_no_reference(benchctl):
    wanted = Expectation("throughput_bps", least=Relative(0.9, "baseline"))
    settings = Settings({"n": (1,)}, "sequential", (wanted,))
    measured_run(benchctl.store, {1: FIVE_MBIT}, profile="q", tags=["baseline"])
    run = measured_run(benchctl.store, {1: FIVE_MBIT}, settings=settings)
    assert "no baseline value is known" in benchctl("show", run).stdout
    benchctl("baseline", "set", run)
    assert "no baseline value is known" in benchctl("show", run).stdout
    later = measured_run(benchctl.store, {1: FIVE_MBIT}, settings=settings)
    assert "expectation" not in benchctl("show", later).stdout
