"""Trials side by side over real SSH: limits, hosts that come late or die, skips, stops, others."""

import json
import os
import random
import signal
from contextlib import closing
from datetime import datetime
from pathlib import Path

import pytest
from remote.measured import Measured
from remote_lab import NEEDS, kill
from waiting import wait_until

from benchctl.store.read import Reader

pytestmark = NEEDS

NAMES = tuple("abcdefgh")
PAIRS = len(NAMES) * (len(NAMES) - 1)
AT_ONCE = len(NAMES) // 2
SEED = 2
# Hosts whose servers may be killed: without a service of the lab, which would have failed.
TOPOLOGY = (
    "[hosts]\nhere = {}\nkeys = { services = [{ ssh = 22 }] }\n"
    + "".join(
        f'{n} = {{ sysctl = {{ "net.ipv4.ip_unprivileged_port_start" = 0, '
        f'"net.ipv4.ping_group_range" = "0 2147483647" }} }}\n'
        for n in NAMES
    )
    + "[routers]\nmiddle = {}\n[links]\n"
    + "".join(f'{n} = {{ between = ["{n}", "middle"] }}\n' for n in ("here", "keys", *NAMES))
)


def profile(*run, hosts=NAMES, count=4):
    """A mesh whose tool sleeps and prints."""
    lines = [f'{name} = {{ ssh = "{name}" }}' for name in hosts]
    return "\n".join(
        [
            "[hosts]", *lines,
            f'[flows.main]\nbackend = "ping"\ncount = {count}\ninterval = "100ms"',
            f"[axes]\npair = {{ mesh = {list(hosts)} }}",
            '[run]\nparallel = "hosts"\nseed = 5\nbackoff = "200ms"', *run,
        ]
    )  # fmt: skip


@pytest.fixture
def lab(labs):
    with labs.lend(TOPOLOGY) as lab:
        for name in NAMES:
            lab.serve(name, port=22)
        yield lab


def measured(lab, tmp_path, *run, options=(), **mesh):
    file = tmp_path / "mesh.toml"
    file.write_text(profile(*run, **mesh))
    return Measured(lab, file, options)


def spans(trials):
    """Return (start, end, hosts) of each trial that began, in Unix time."""
    time = lambda text: datetime.fromisoformat(text).timestamp()  # noqa: E731
    return [
        (time(one["started"]), time(one["finished"]), set(one["point"]["pair"].split(":")), one)
        for one in trials
        if one["started"]
    ]


def nothing_overlaps(trials):
    """No host is in two trials at once; `beside` are those that overlap."""
    found = spans(trials)
    for start, end, hosts, one in found:
        for other_start, other_end, others, other in found:
            if other is not one and start < other_end and other_start < end:
                assert not hosts & others, (one["point"], other["point"])
                assert other["index"] in one["beside"], (one["index"], other["index"])


def test_all_pairs_are_measured_side_by_side_and_each_host_has_one_trial(lab, tmp_path):
    run = measured(lab, tmp_path)
    assert run.end() == 0, run.told()
    trials = run.of("trial_ended")
    assert sorted(one["index"] for one in trials) == list(range(PAIRS))
    assert {one["status"] for one in trials} == {"ok"}
    nothing_overlaps(trials)
    assert max(len(one["beside"]) for one in trials) >= 2
    # Each event says whose it is.
    of_trial = {one["index"]: 0 for one in trials}
    for sample in run.of("sample"):
        of_trial[sample["trial"]] += 1
    assert set(of_trial.values()) == {4}


def test_a_host_that_comes_late_takes_part_and_delays_nobody(lab, tmp_path):
    kill(lab.processes("f"))
    run = measured(lab, tmp_path, "attempts = 50")
    with_f = 2 * (len(NAMES) - 1)
    run.until("trial_ended", PAIRS - with_f)
    early = run.of("trial_ended")
    assert not [one for one in early if "f" in one["point"]["pair"].split(":")]
    lab.serve("f", port=22)
    assert run.end() == 0, run.told()
    trials = run.of("trial_ended")
    assert {one["status"] for one in trials} == {"ok"}
    assert len({one["index"] for one in trials}) == PAIRS
    assert [one for one in run.of("note") if one["text"] == "host f is back"]


def test_a_host_that_dies_fails_its_own_trials_with_the_reason(lab, tmp_path):
    run = measured(lab, tmp_path, "attempts = 1")
    run.until("trial_ended", 4)
    kill(lab.processes("f"))
    assert run.end() == 1, run.told()
    trials = run.of("trial_ended")
    assert len({one["index"] for one in trials}) == PAIRS
    for one in trials:
        with_it = "f" in one["point"]["pair"].split(":")
        assert one["status"] == "ok" or (with_it and "host f: " in one["error"]), one
    assert [one for one in trials if one["status"] == "failed"]


def test_a_skip_ends_all_that_run_and_a_stop_leaves_the_rest_to_resume(lab, tmp_path):
    run = measured(lab, tmp_path, options=["--set", "main.count=600"])
    started = run.until("flow_started", AT_ONCE)
    assert started
    os.kill(run.runner, signal.SIGUSR1)
    run.until("trial_ended", AT_ONCE)
    skipped = run.of("trial_ended")
    assert {one["status"] for one in skipped} == {"skipped"}
    run.until("flow_started", 2 * AT_ONCE)
    os.kill(run.runner, signal.SIGTERM)
    assert run.end() == 1
    ended = {one["index"]: one["status"] for one in run.of("trial_ended")}
    assert sorted(ended.values()).count("interrupted") == AT_ONCE
    assert not any(lab.left(name) for name in NAMES)


def stored(lab, run):
    """Return the trials of the run as its store has them."""
    done = lab.benchctl("export", "last", "--format", "json", BENCHCTL_STORE=run.store)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["trials"]


def ended(run):
    """Return how many trials of a run have ended."""
    with closing(Reader(Path(run.store))) as reader:
        return sum(one.status.has_ended and not one.status.is_open for one in reader.trials(1))


def until_ended(run, process, least):
    """Wait until so many trials, or what measures them, have ended."""
    wait_until(lambda: ended(run) >= least or process.poll() is not None)


def kill_some(lab, run, draw):
    """Kill a server with all that runs there, something that a host runs, or an ssh here."""
    host, what = draw.choice(NAMES), draw.choice(["server", "agent", "ssh"])
    if what == "server":
        kill(lab.processes(host))
        lab.serve(host, port=22)
        return
    if what == "agent":
        there = sorted(lab.left(host))
    else:
        runner = run.runner
        children = Path(f"/proc/{runner}/task/{runner}/children").read_text()
        there = [pid for pid in map(int, children.split()) if command(pid).startswith("ssh ")]
    kill(draw.sample(there, min(1, len(there))))


def command(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:  # it has ended
        return ""


def test_whatever_is_killed_every_trial_is_measured_once_or_has_its_reason(lab, tmp_path):
    """Servers, agents, ssh and the runner, at moments by the seed, over more than 200 trials."""
    draw, repeats = random.Random(SEED), 4
    run = measured(lab, tmp_path, f"repeats = {repeats}", "attempts = 5", count=2)
    resume = ("resume", "last", "--quiet", "-o", str(tmp_path / "out.json"))
    process, count = run.process, 0
    run.until("trial_started")
    runner_dies = draw.sample(range(1, 10), 2)
    for number in range(10):
        count += draw.randint(10, 24)
        until_ended(run, process, count)
        if process.poll() is not None:
            break
        if number in runner_dies:
            kill([run.runner])
            process.wait()
            process = lab.start(*resume, BENCHCTL_STORE=run.store)
            until_ended(run, process, count + 1)
        else:
            kill_some(lab, run, draw)
    process.wait()
    run.end()
    trials = stored(lab, run)
    assert sorted(one["index"] for one in trials) == list(range(repeats * PAIRS))
    for one in trials:
        assert one["status"] in ("ok", "failed"), one
        assert (one["status"] == "failed") == bool(one["error"]), one
        assert len(one["flows"]) <= 1, one
    # Few are lost: a host that comes back is measured.
    assert sum(one["status"] == "ok" for one in trials) > 0.95 * len(trials)
    nothing_overlaps(trials)
    assert not any(lab.left(name) for name in NAMES)


def test_runs_of_two_people_interleave_on_the_same_hosts(lab, tmp_path):
    runs, hosts = [], NAMES[:4]
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        runs.append(measured(lab, tmp_path / name, hosts=hosts))
    assert [run.end() for run in runs] == [0, 0], [run.told() for run in runs]
    first, second = (spans(run.of("trial_ended")) for run in runs)
    assert len(first) == len(second) == len(hosts) * (len(hosts) - 1)
    for start, end, hosts, one in first:
        for other_start, other_end, others, other in second:
            if start < other_end and other_start < end:
                assert not hosts & others, (one["point"], other["point"])
    # Neither waits for the end of the other.
    ends = [max(end for _, end, *_ in each) for each in (first, second)]
    assert min(start for start, *_ in second) < ends[0]
    assert min(start for start, *_ in first) < ends[1]
    notes = [note["text"] for run in runs for note in run.of("note")]
    assert any("is measured by" in text for text in notes), notes
