import json
import os
import shlex
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
from lab.lab_support import processes_with
from waiting import COMMAND_S, wait_until

OK = '[flows.main]\nbackend = "toy"\n[axes]\nplan = ["ok"]\n[run]\nrepeats = 2\n'
HANG = """\
[flows.main]
backend = "toy"
[axes]
plan = ["ok", "hang"]
[run]
seed = 1
deadline = "10min"
"""


def count(store, query):
    try:
        with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as connection:
            return connection.execute(query).fetchone()[0]
    except sqlite3.OperationalError:
        return 0  # not there yet


def sample_of_the_hanging_tool(benchctl):
    query = "SELECT count(*) FROM sample"
    wait_until(lambda: count(benchctl.store, query) == 4)


def mend_the_tool(benchctl):
    with closing(sqlite3.connect(benchctl.store)) as connection, connection:
        connection.execute("UPDATE trial SET flows = replace(flows, 'hang', 'ok')")


def tools_left(benchctl):
    """Return the tools of this run that still run."""
    processes = processes_with(f"BENCHCTL_STORE={benchctl.store}")
    return [pid for pid, words in processes.items() if words == b"sleep 600 "]


def tools_of(runner):
    """Return the tools that a runner has started and that still run."""
    processes = subprocess.run(
        ["ps", "-eo", "ppid,args"], capture_output=True, text=True, check=True
    )
    lines = [line.split(None, 1) for line in processes.stdout.splitlines()[1:]]
    return [args for ppid, args in lines if int(ppid) == runner and "sleep 600" in args]


def test_stdout_carries_the_table_and_stderr_the_progress(benchctl):
    result = benchctl("run", benchctl.profile(OK))
    assert result.returncode == 0
    table, note, said = result.stdout.split("\n\n")
    assert table == "n      throughput\n─  ──────────────\n2  9.00 kbit/s ±0"
    assert note.startswith("2 repeats are too few")
    assert said.startswith("2 of 2 trials measured.\nThroughput: 9.00 kbit/s ±0.\n")
    assert "[1/2]: ok main send 9.00 kbit/s" in result.stderr
    assert "[2/2] repeat 2: ok" in result.stderr


def test_every_format_goes_to_a_file_by_its_ending(benchctl):
    profile = benchctl.profile(OK)
    result = benchctl("run", profile, "-q", "-o", "out.json")
    assert (result.returncode, result.stdout) == (0, "")
    document = json.loads((benchctl.directory / "out.json").read_text())
    assert document["run"]["status"] == "ok"
    assert [trial["repeat"] for trial in document["trials"]] == [1, 2]
    (flow,) = document["trials"][0]["flows"]
    assert flow["metrics"]["throughput_bps"] == 9000
    assert flow["sources"] == {"throughput_bps": "tool"}
    assert flow["requested"] == {"duration": 0.1, "plan": "ok"}
    assert document["summary"][0]["n"] == 2
    for form in ("table", "md", "csv", "json", "jsonl"):
        assert benchctl("export", "last", "--format", form).stdout


def test_events_are_written_as_they_happen(benchctl):
    process = benchctl.start("run", benchctl.profile(HANG), "-q", "--events")
    events = []
    for line in process.stdout:
        events.append(json.loads(line))
        samples = sum(event["event"] == "sample" for event in events)
        if events[-1]["event"] == "sample" and samples == 4:
            process.send_signal(signal.SIGINT)
    process.communicate(timeout=COMMAND_S)
    assert process.returncode == 130
    assert [e["event"] for e in events if e["event"] not in ("sample", "note")] == [
        "trial_started", "flow_started", "flow_ended", "trial_ended",
        "trial_started", "flow_started", "flow_ended", "trial_ended", "run_ended",
    ]  # fmt: skip
    assert events[-1]["status"] == "interrupted"


def test_a_failed_trial_does_not_stop_the_run_and_ends_with_code_1(benchctl):
    text = HANG.replace("hang", "fail") + "attempts = 2\nbackoff = '10ms'\n"
    result = benchctl("run", benchctl.profile(text))
    assert result.returncode == 1
    assert "9.00 kbit/s" in result.stdout
    assert "failed: main: sh ended with code 3: no luck today" in result.stdout
    shown = benchctl("show", "last", "--trials").stdout
    assert "main, attempt 2: failed" in shown


def test_resume_failed_measures_failed_trials_again_and_only_those(benchctl):
    text = OK.replace('"ok"', '"ok", "fail", "refuse"') + "attempts = 1\nseed = 1\n"
    benchctl("run", benchctl.profile(text), "-q")
    assert "--failed measures its failed trials again" in benchctl("resume").stderr
    with closing(sqlite3.connect(benchctl.store)) as connection, connection:
        connection.execute("UPDATE trial SET status = 'timed_out' WHERE flows LIKE '%refuse%'")
        connection.execute(
            "UPDATE trial SET flows = replace(replace(flows, 'fail', 'ok'), 'refuse', 'ok')"
        )
    result = benchctl("resume", "--failed")
    assert (result.returncode, result.stdout.count("9.00 kbit/s ±0\n")) == (0, 3)
    assert "4 of 6 trials left" in result.stderr
    told = [line.split(": ")[1] for line in result.stderr.splitlines() if line.startswith("[")]
    assert told == ["ok main send 9.00 kbit/s"] * 4
    assert "attempt 1" not in result.stderr  # which failed before
    shown = benchctl("show", "last", "--trials").stdout
    assert shown.count("main, attempt 1: ok") == 2
    assert shown.count("main, attempt 2: ok") == 4
    assert (
        "has nothing left to measure\n  see benchctl show" in benchctl("resume", "--failed").stderr
    )


def test_what_helps_is_printed_once_by_run_and_show_and_for_each_attempt_by_show_trials(benchctl):
    text = OK.replace('"ok"', '"refuse"')
    result = benchctl("run", benchctl.profile(text))
    assert result.stderr.count("main: it will not; ask it nicely\n") == 1
    assert result.stderr.count("ask it nicely") == 1
    for shown in (result.stdout, benchctl("show", "last").stdout):
        assert "trial 1 (plan=refuse), repeat 1: failed: main: it will not; ask it nicely" in shown
        assert "trial 2 (plan=refuse), repeat 2: failed: main: it will not\n" in shown
    assert benchctl("show", "last", "--trials").stdout.count("    ask it nicely\n") == 2


def test_a_flow_that_was_ended_at_its_deadline_counts_with_what_it_showed(benchctl):
    text = OK.replace('"ok"', '"hang"').replace("repeats = 2", 'deadline = "2s"\nattempts = 1')
    result = benchctl("run", benchctl.profile(text))
    assert result.returncode == 1
    assert result.stdout.startswith("n   throughput\n─  ───────────\n1  8.00 kbit/s\n")
    assert "trial 1 (plan=hang), repeat 1: timed_out: exceeded its deadline of 2 s" in result.stdout
    assert "[1/1]: timed_out main send 8.00 kbit/s" in result.stderr
    itself = benchctl("compare", "last", "last")
    assert "8.00 kbit/s" in itself.stdout
    assert itself.stderr.startswith("benchctl: A and B are one run, ")


def test_a_comparison_knows_which_way_a_backends_own_metric_is_better(benchctl):
    text = '[flows.main]\nbackend = "toy"\nplan = "lucky"\n[run]\nrepeats = 4\n'
    benchctl("run", benchctl.profile(text))
    benchctl("run", benchctl.profile(text), "--set", "plan=luckier")
    newer, older = (line.split()[0] for line in benchctl("runs").stdout.splitlines()[1:])
    del benchctl.environment["BENCHCTL_PLUGINS"]  # The run says it, without the plugin.
    lines = benchctl("compare", older, newer, "--json").stdout.splitlines()
    verdicts = {entry["metric"]: entry["verdict"] for entry in map(json.loads, lines)}
    assert verdicts["luck"] == "better"


def test_an_expectation_that_is_not_met_ends_with_code_1(benchctl):
    text = OK + '[[expect]]\nmetric = "throughput_bps"\nat_least = "1Mbit"\n'
    result = benchctl("run", benchctl.profile(text))
    assert result.returncode == 1
    assert "expectation not met: throughput_bps of main" in result.stdout
    wrong = benchctl("run", benchctl.profile(text.replace("1Mbit", "1Mbps")))
    assert wrong.returncode == 2
    assert "p.toml:9: expect[0].at_least: " in wrong.stderr


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["ctrl-c", "sigterm"]
)
def test_a_stop_keeps_what_was_measured_and_resume_measures_the_rest(benchctl, number, code):
    process = benchctl.start_anew("run", benchctl.profile(HANG))
    sample_of_the_hanging_tool(benchctl)
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=COMMAND_S)
    assert process.returncode == code
    assert "9.00 kbit/s" in stdout  # the table so far
    assert "trial 2 (plan=hang), repeat 1: interrupted" in stdout
    assert "benchctl resume" in stderr
    assert not tools_left(benchctl)
    mend_the_tool(benchctl)
    resumed = benchctl("resume", "last")
    assert resumed.returncode == 0
    assert "1 of 2 trials left" in resumed.stderr
    assert benchctl("resume", "last").returncode == 2
    assert count(benchctl.store, "SELECT count(*) FROM flow") == 3


def test_a_second_ctrl_c_ends_at_once(benchctl):
    process = benchctl.start("run", benchctl.profile(HANG), "-q")
    sample_of_the_hanging_tool(benchctl)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=COMMAND_S)
    assert process.returncode == 130
    wait_until(lambda: not tools_left(benchctl))
    assert benchctl("runs").stdout.splitlines()[1].endswith("interrupted")


@pytest.mark.parametrize("victim", ["command", "runner"])
def test_a_kill_leaves_no_tool_behind_and_the_run_resumes(benchctl, victim):
    process = benchctl.start_anew("run", benchctl.profile(HANG), "-q")
    sample_of_the_hanging_tool(benchctl)
    if victim == "command":
        process.kill()
    else:
        pid = count(benchctl.store, "SELECT runner_pid FROM run")
        subprocess.run(["kill", "-9", str(pid)], check=True)
    _, stderr = process.communicate(timeout=COMMAND_S)
    wait_until(lambda: not tools_left(benchctl))
    assert count(benchctl.store, "SELECT count(*) FROM sample") == 4
    facts = json.loads(benchctl("show", "--facts").stdout)
    assert facts["tools"] == {"toy": "1.0"}
    if victim == "runner":
        assert process.returncode == 4
        assert "the runner died" in stderr
        assert benchctl("runs").stdout.splitlines()[1].endswith("died")
    ended = "SELECT count(*) FROM run WHERE status = 'interrupted'"
    if victim == "command":
        wait_until(lambda: count(benchctl.store, ended) == 1)
    mend_the_tool(benchctl)
    assert benchctl("resume").returncode == 0


def test_a_run_that_is_being_measured_is_not_resumed_but_can_be_read(benchctl):
    process = benchctl.start("run", benchctl.profile(HANG), "-q")
    sample_of_the_hanging_tool(benchctl)
    refused = benchctl("resume", "last")
    assert refused.returncode == 2
    assert "is in progress" in refused.stderr
    assert "running" in benchctl("runs").stdout
    assert "9.00 kbit/s" in benchctl("show", "last").stdout
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=COMMAND_S)


def test_set_only_and_repeat_change_what_runs(benchctl):
    profile = benchctl.profile(HANG)
    args = ("--set", "duration=250ms", "--only", "plan=ok", "--repeat", "3", "--format", "json")
    document = json.loads(benchctl("run", profile, "-q", *args).stdout)
    assert [trial["point"] for trial in document["trials"]] == [{"plan": "ok"}] * 3
    assert document["trials"][0]["flows"][0]["requested"]["duration"] == 0.25


def test_a_closed_stdout_gets_no_complaint(benchctl):
    benchctl("run", benchctl.profile(OK), "-q")
    command = f"{shlex.quote(sys.executable)} -m benchctl runs >&-"
    told = subprocess.run(
        ["sh", "-c", command], cwd=benchctl.directory, env=benchctl.environment,
        stderr=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    assert (told.returncode, told.stderr) == (0, "")


def test_a_reader_that_has_seen_enough_gets_no_complaint(benchctl):
    benchctl("run", benchctl.profile(OK), "-q")
    process = benchctl.start_anew("export", "last", "--format", "json")
    process.stdout.close()
    process.wait(COMMAND_S)
    assert process.stderr.read() == ""
    process.stderr.close()


def test_a_store_that_another_program_holds_ends_no_run(benchctl):
    process = benchctl.start("run", benchctl.profile(HANG), "-q")
    sample_of_the_hanging_tool(benchctl)
    pid = count(benchctl.store, "SELECT runner_pid FROM run")
    with closing(sqlite3.connect(benchctl.store, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        os.kill(pid, signal.SIGUSR1)  # skip the trial: its end has to wait
        wait_until(lambda: not tools_of(pid))
        assert count(benchctl.store, "SELECT count(*) FROM run WHERE status = 'running'") == 1
        other.execute("ROLLBACK")
    process.communicate(timeout=COMMAND_S)
    assert process.returncode == 0
    statuses = "SELECT group_concat(status) FROM (SELECT status FROM trial ORDER BY position)"
    assert count(benchctl.store, statuses) == "ok,skipped"


def test_runs_in_two_stores_are_told_of_each_other_before_anything_is_measured(benchctl):
    profile = benchctl.profile(HANG)
    process = benchctl.start_anew("run", profile, "-q")
    sample_of_the_hanging_tool(benchctl)
    other = benchctl("run", profile, "--only", "plan=ok", "--store", "other.sqlite")
    told = [line for line in other.stderr.splitlines() if "being measured here" in line]
    assert [line.split(": ", 1) for line in told if str(benchctl.store) in line] == [
        ["  warning", f"another run is being measured here, in store {benchctl.store}: the two"
         " affect each other"],
    ]  # fmt: skip
    assert other.stderr.index("being measured here") < other.stderr.index("[1/1]")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=COMMAND_S)


def test_of_two_who_resume_a_run_at_once_one_is_refused_before_anything_is_measured(benchctl):
    process = benchctl.start("run", benchctl.profile(HANG), "-q")
    sample_of_the_hanging_tool(benchctl)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=COMMAND_S)
    both = [benchctl.start("resume", "last", "-q") for _ in range(2)]
    wait_until(lambda: any(one.poll() is not None for one in both))
    both.sort(key=lambda one: one.poll() is None)
    refused, measuring = both
    stdout, stderr = refused.communicate(timeout=COMMAND_S)
    assert "is in progress" in stderr
    assert (stdout, measuring.poll()) == ("", None)
    measuring.send_signal(signal.SIGINT)
    measuring.communicate(timeout=COMMAND_S)
    assert measuring.returncode == 130
