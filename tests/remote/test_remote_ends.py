"""However a run on remote hosts ends, nothing stays there, and what was measured is kept."""

import os
import random
import signal
import time
from functools import partial

from remote.measured import MAIN
from remote_lab import NEEDS, kill
from waiting import wait_until

pytestmark = NEEDS

HOSTS = ("paris", "tokyo")
SEED = 20261122
# So long that only its end by force is seen.
LONG = (
    MAIN.replace('duration = "1s"', 'duration = "10min"') + "[run]\nattempts = 1\npatience = '3s'\n"
)


def nothing_is_left(lab, *hosts):
    wait_until(
        lambda: not any(lab.left(host) for host in hosts or HOSTS),
        lambda: {host: lab.left(host) for host in hosts or HOSTS},
    )


def those(lab, host, word):
    """Return the processes of a host that have a word in their command lines."""
    return [pid for pid, line in lab.left(host).items() if word in line]


def agents(lab, host):
    return those(lab, host, "exec(")


def sessions(lab, host):
    return those(lab, host, "sshd: benchctl")


def test_a_run_that_ends_leaves_nothing_there(lab, measure):
    run = measure(MAIN)
    assert run.end() == 0, run.told()
    nothing_is_left(lab)


def test_a_runner_that_is_killed_at_any_moment_leaves_nothing_there(lab, measure):
    """While it connects, starts the servers, measures, and ends."""
    for moment in ("", "trial_started", "flow_started", "sample", "flow_ended"):
        run = measure(f"{MAIN}[run]\nrepeats = 9\n")
        if moment:
            run.until(moment)
        else:
            wait_until(partial(sessions, lab, "paris"), run.told)
        kill([run.runner])
        run.process.kill()
        run.end()
        nothing_is_left(lab, "here", *HOSTS)


def test_a_trial_whose_host_is_lost_at_any_moment_is_measured_again(lab, measure):
    moments = random.Random(SEED)
    run = measure(f"{MAIN}[run]\nrepeats = 4\nattempts = 9\nbackoff = '100ms'\n")
    for turn, victim in enumerate((agents, sessions, agents, sessions), 1):
        run.until("trial_started", turn)
        time.sleep(moments.uniform(0.0, 1.2))
        host = moments.choice(HOSTS)
        kill(wait_until(partial(victim, lab, host), partial(lab.left, host)))
    assert run.end() == 0, run.told()
    assert [trial["status"] for trial in run.of("trial_ended")] == ["ok"] * 4
    nothing_is_left(lab)


def test_a_host_that_takes_long_to_log_in_again_takes_nothing_of_the_deadline(
    lab, measure, tmp_path
):
    slow, deadline_s = tmp_path / "slow", 6
    words = f'[ ! -e {slow} ] || sleep {deadline_s + 1}; exec sh -c "$SSH_ORIGINAL_COMMAND"'
    lab.serve("tokyo", "-o", f"ForceCommand={words}")
    lab.configure("Host tokyo\nPort 2222")
    limits = f"[run]\nattempts = 2\nbackoff = '100ms'\ndeadline = '{deadline_s}s'\n"
    run = measure(MAIN.replace('"1s"', '"300ms"') + limits)
    # Before its client begins: nobody has to be quicker than the flow.
    wait_until(lambda: those(lab, "tokyo", "--one-off"), lambda: lab.left("tokyo"))
    slow.touch()
    kill(agents(lab, "tokyo"))
    assert run.end() == 0, run.told()
    assert [flow["status"] for flow in run.of("flow_ended")] == ["failed", "ok"]
    nothing_is_left(lab)


def of_benchctl(lab, host):
    """Return what the run has on a host, without the server's own processes for its login."""
    return {pid: line for pid, line in lab.left(host).items() if not line.startswith("sshd: ")}


def lost(run, host):
    """Wait for the end of a run whose host was lost, and check what it reports."""
    assert run.end() == 1
    [trial] = run.of("trial_ended")
    [flow] = run.of("flow_ended")
    assert trial["status"] == flow["status"] == "failed"
    assert f"host {host}" in flow["error"], flow["error"]
    measured = [s for s in run.of("sample") if s["told_by"] == "client"]
    assert [s["start_s"] for s in measured] == sorted(s["start_s"] for s in measured)
    return len(measured)


def test_a_cut_link_ends_the_trial_with_the_reason_and_keeps_what_was_measured(lab, measure):
    run = measure(LONG)
    run.until("sample", 12)
    lab.cut("east")
    # The agent notices by itself that nobody speaks to it. Its server waits for TCP to give up.
    wait_until(lambda: not of_benchctl(lab, "tokyo"), lambda: lab.left("tokyo"))
    assert lost(run, "tokyo") >= 6
    nothing_is_left(lab, "here", "paris")


def test_a_frozen_server_of_ssh_is_a_lost_host(lab, measure):
    run = measure(LONG)
    run.until("sample", 12)
    frozen = set(sessions(lab, "tokyo"))
    for pid in frozen:
        os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: not of_benchctl(lab, "tokyo"), lambda: lab.left("tokyo"))
    assert lost(run, "tokyo") >= 6
    assert set(lab.left("tokyo")) == frozen
    for pid in frozen:
        os.kill(pid, signal.SIGCONT)
    nothing_is_left(lab, "here", *HOSTS)
