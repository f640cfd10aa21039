"""``again``: the stored profile is measured once more, and both runs are compared."""

import json
from pathlib import Path

import pytest

OK = """
[flows.main]
backend = "toy"
duration = "100ms"
[axes]
plan = ["ok", "lucky"]
[run]
attempts = 1
"""
LABS = Path(__file__).parents[3] / "profiles" / "labs"
SAMPLES = Path(__file__).parents[2] / "imports" / "samples"


def exported(benchctl, name="last"):
    return json.loads(benchctl("export", name, "--format", "json").stdout)


def test_the_stored_profile_is_measured_with_its_options_and_compared(benchctl):
    profile = benchctl.profile(OK)
    first = benchctl("run", profile, "-q", "--only", "plan=ok", "--set", "duration=50ms")
    assert first.returncode == 0, first.stderr
    (benchctl.directory / profile).unlink()
    again = benchctl("again", "last", "--tag", "second")
    assert again.returncode == 0, again.stderr
    table, _, compared = again.stdout.partition("\nA ")
    assert "1 of 1 trial measured." in table
    assert "throughput" in compared
    assert compared.endswith("one repeat of each figure decides nothing: use --repeat 5\n")
    run = exported(benchctl)
    assert run["run"]["tags"] == ["second"]
    assert run["run"]["profile"] == "p"
    (trial,) = run["trials"]
    assert trial["point"] == {"plan": "ok"}
    assert trial["flows"][0]["requested"]["duration"] == 0.05


def test_repeats_of_ones_own_decide(benchctl):
    benchctl("run", benchctl.profile(OK), "-q", "--only", "plan=ok", "--repeat", "2")
    again = benchctl("again", "--repeat", "3", "-q")
    assert "decides nothing" not in again.stdout
    assert exported(benchctl)["run"]["trials"] == 3


def test_its_exit_code_is_that_of_the_comparison(benchctl):
    benchctl("run", benchctl.profile(OK), "-q", "--only", "plan=ok")
    limit = ("--fail-on", "throughput_bps worse by 5%")
    assert benchctl("again", "-q", *limit).returncode == 0
    strict = benchctl("again", "-q", "--strict", *limit)
    assert (strict.returncode, "cannot be excluded" in strict.stdout) == (1, True)


def test_a_run_with_a_failed_trial_is_compared_as_far_as_it_goes(benchctl):
    benchctl("run", benchctl.profile(OK.replace('"lucky"', '"fail"')), "-q")
    again = benchctl("again", "-q")
    assert again.returncode == 1
    assert "too little data" in again.stdout


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--fail-on", "faster"], "expected METRIC worse by SHARE"),
        (["--strict"], "--strict needs --fail-on"),
    ],
)
def test_a_wrong_option_is_rejected_before_anything_is_measured(benchctl, words, why):
    benchctl("run", benchctl.profile(OK), "-q", "--only", "plan=ok")
    again = benchctl("again", *words)
    assert (again.returncode, why in again.stderr) == (2, True)
    assert benchctl("runs").stdout.count("\n") == 2


def test_an_imported_run_has_nothing_to_measure(benchctl):
    (benchctl.directory / "results").mkdir()
    text = (SAMPLES / "iperf3" / "3.12_tcp_J.json").read_bytes()
    (benchctl.directory / "results" / "a.json").write_bytes(text)
    imported = benchctl("import", "results")
    assert imported.returncode == 0, imported.stderr
    again = benchctl("again")
    assert again.returncode == 2
    assert "was imported from iperf3: there is nothing to measure" in again.stderr


@pytest.mark.netns
def test_the_topology_is_that_of_the_first_run(benchctl):
    (benchctl.directory / "access.toml").write_bytes((LABS / "access.toml").read_bytes())
    benchctl.profile("""
        [lab]
        topology = "access.toml"
        [flows.main]
        backend = "simpleperf"
        from = "home"
        to = "server"
        duration = "200ms"
        """)
    rate = ("--set", "lab.links.access.rate=10Mbit", "--set", "lab.verify=false")
    first = benchctl("run", "p.toml", "-q", *rate)
    assert first.returncode == 0, first.stderr
    (benchctl.directory / "access.toml").unlink()
    again = benchctl("again", "-q")
    assert again.returncode == 0, again.stderr
    (flow,) = exported(benchctl)["trials"][0]["flows"]
    assert flow["expected"]["throughput_bps"] == pytest.approx(9.56e6, rel=0.01)
