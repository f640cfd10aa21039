"""Hosts that are off, cut off, or hostile: each costs what needs it, and no more time than said."""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hosts.ssh.test_hostile import PONGS, SHELL_FLOOD, STARTS, hostile
from remote.measured import MAIN
from remote_lab import NEEDS, TWO, remote_lab
from waiting import wait_until

pytestmark = NEEDS

# Each ssh to it leaves a line.
OTHER = 'Match originalhost lima exec "echo >>{}"\nHostName tokyo\nPort 2222'
# Three hosts, of which one is off until somebody serves it.
MESH = """
[hosts.paris]
ssh = "paris"
[hosts.tokyo]
ssh = "tokyo"
[hosts.lima]
ssh = "lima"
address = "tokyo"
ports = "9100-9120"
cleanup = "true"

[flows.main]
backend = "simpleperf"
duration = "300ms"
rate = "2Mbit"

[axes]
pair = { mesh = ["paris", "tokyo", "lima"] }
"""


def test_a_host_that_is_off_costs_its_trials_which_are_measured_when_it_is_there(
    lab, measure, tmp_path
):
    logins = tmp_path / "logins"
    lab.configure(OTHER.format(logins))
    run = measure(MESH, "--trust")
    assert run.end() == 1, run.told()
    trials = {trial["point"]["pair"]: trial for trial in run.of("trial_ended")}
    assert len(trials) == 6
    for pair, trial in trials.items():
        if "lima" in pair:
            assert trial["status"] == "failed"
            assert trial["error"] == "host lima: it refuses connections"
        else:
            assert trial["status"] == "ok", trial
    assert [note for note in run.of("note") if "trials that need it fail" in note["text"]]
    # At the start, and before each of its four trials.
    assert logins.read_text() == 5 * "\n"
    lab.serve("tokyo")
    done = lab.benchctl("resume", "last", "--failed", "--quiet", BENCHCTL_STORE=run.store)
    assert done.returncode == 0, done.stderr


# The hosts have a way between them that stays: only that of SSH is cut.
LONG_DESK = TWO.replace('["here", "middle"]', '["here", "middle"], delay = "1ms"')


def test_a_cut_shorter_than_the_patience_costs_nothing(measure, tmp_path):
    seconds = 6
    with remote_lab(tmp_path, LONG_DESK) as lab:
        text = MAIN.replace('"1s"', f'"{seconds}s"') + "[run]\nattempts = 1\npatience = '9s'\n"
        run = measure(text, lab=lab)
        run.until("sample", 6)
        lab.cut("desk")
        time.sleep(2.5)
        lab.mend("desk")
        assert run.end() == 0, run.told()
    samples = [s for s in run.of("sample") if s["told_by"] == "client"]
    assert len(samples) == 10 * seconds
    assert samples[-1]["end_s"] == pytest.approx(seconds, abs=0.05)


@pytest.mark.parametrize(
    ("does", "why"),
    [
        ("yes", "host tokyo: the login works, but runs no command before it has printed 1 MiB"),
        (f"exec {sys.executable} -c 'print(7 * chr(0))'", "host tokyo: "),
    ],
    ids=["flood", "nothing"],
)
def test_a_login_that_is_none_is_named_and_ended(does, why, lab, measure):
    lab.serve("tokyo", "-o", f"ForceCommand={does}")
    lab.configure("Host tokyo\nPort 2222")
    run = measure(MAIN)
    began = time.monotonic()
    assert run.end() == 3, run.told()
    assert time.monotonic() - began < 15.0
    assert why in "".join(run.errors)
    wait_until(lambda: not lab.left("tokyo"), lambda: lab.left("tokyo"))


def test_a_plain_shell_that_floods_ends_the_run_with_the_reason(lab, measure, tmp_path):
    script = tmp_path / "shell"
    script.write_text(SHELL_FLOOD)
    lab.serve("tokyo", "-o", f"ForceCommand=exec sh {script}")
    lab.configure("Host tokyo\nPort 2222")
    run = measure(MAIN)
    assert run.end() == 3, run.told()
    assert "host tokyo: what its agent says is not allowed: an answer of" in "".join(run.errors)
    wait_until(lambda: not lab.left("tokyo"), lambda: lab.left("tokyo"))


def test_an_interrupt_ends_a_run_whose_agent_never_ends_anything(lab, measure, tmp_path):
    words = hostile(f"{PONGS}{STARTS}{ANSWERS}")
    script = tmp_path / "agent.py"
    script.write_text(words[-1])
    script.chmod(0o644)
    lab.serve("tokyo", "-o", f"ForceCommand={sys.executable} -I -S {script}")
    lab.configure("Host tokyo\nPort 2222")
    flow = MAIN.replace('from = "paris"', 'from = "tokyo"').replace('to = "tokyo"', 'to = "paris"')
    run = measure(flow.replace('"1s"', '"10min"'))
    run.until("flow_started")
    run.process.send_signal(signal.SIGINT)
    assert run.end() == 130, run.told()
    wait_until(lambda: not lab.left("paris"), lambda: lab.left("paris"))


# Commands of a host after a trial that was interrupted.
CLEANS = 'ssh = "paris"\ncleanup = "{}"'


def cleaned_run(measure, cleanup):
    text = MAIN.replace('ssh = "paris"', CLEANS.format(cleanup)).replace('"1s"', '"10min"')
    run = measure(text, "--trust")
    run.until("flow_started")
    return run


def test_an_interrupt_lets_the_cleanup_commands_end(lab, measure, tmp_path):
    proof = tmp_path / "clean"
    run = cleaned_run(measure, f"sleep 1; echo clean > {proof}")
    run.process.send_signal(signal.SIGINT)
    assert run.end() == 130, run.told()
    assert proof.read_text() == "clean\n"
    wait_until(lambda: not lab.left("paris"), lambda: lab.left("paris"))


def test_a_second_interrupt_ends_a_run_whose_cleanup_does_not_end(lab, measure):
    run = cleaned_run(measure, "sleep 1000")
    run.process.send_signal(signal.SIGINT)
    wait_until(lambda: "sleep 1000" in lab.left("paris").values(), lambda: lab.left("paris"))
    run.process.send_signal(signal.SIGINT)
    assert run.end() == 130, run.told()  # long before its thousand seconds
    wait_until(lambda: not lab.left("paris"), lambda: lab.left("paris"))


# Facts, ports and the version of simpleperf of a host on which all seems well.
ANSWERS = """
def answer(value): send(json.dumps({"is": "answer", "number": m["number"], "value": value}))
FACTS = {"hostname": "t", "system": "Linux", "kernel": "6", "machine": "x", "sysctls": {},
         "interfaces": {}, "clock": {}}
if what == "lock": answer("")
if what == "ask":
    answer({"facts.collect": FACTS, "ports.is_own": True, "ports.first_free": [8088, 8089, 8090],
            "counters.read": {}}[m["function"]])
def says(text):
    time_s = time.time()
    send(json.dumps({"is": "output", "number": m["number"], "channel": 1, "time_s": time_s}), text)
if what == "start":
    version = "--version" in m["argv"]
    says(b"simpleperf 9\\n" if version else b"")
    if version: send(json.dumps({"is": "ended", "number": m["number"], "code": 0}))
"""


def test_two_interrupts_end_a_look_at_hosts_at_once(lab, tmp_path):
    script = tmp_path / "agent.py"
    script.write_text(hostile(f"{PONGS}{STARTS}")[-1])
    lab.serve("tokyo", "-o", f"ForceCommand={sys.executable} -I -S {script}")
    lab.configure("Host tokyo\nPort 2222")
    profile = tmp_path / "main.toml"
    profile.write_text(MAIN)
    doctor = lab.start("doctor", "--hosts", str(profile))
    wait_until(lambda: "agent.py" in str(lab.left("tokyo")), lambda: lab.left("tokyo"))
    time.sleep(0.5)
    began = time.monotonic()
    doctor.send_signal(signal.SIGINT)
    time.sleep(0.2)
    doctor.send_signal(signal.SIGINT)
    doctor.communicate()
    assert time.monotonic() - began < 3.0


# --- what mends it, as real servers bring it about ----------------------------------------------


def test_a_changed_key_of_an_alias_is_removed_by_the_command_that_is_shown(lab, measure, tmp_path):
    key, known = tmp_path / "key", tmp_path / "known hosts"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    known.write_text(f"real {Path(f'{key}.pub').read_text()}")
    files = f'UserKnownHostsFile "{known}"\nGlobalKnownHostsFile /dev/null'
    lab.configure(f"Host tokyo\nHostKeyAlias real\n{files}")
    run = measure(MAIN)
    assert run.end() == 3, run.told()
    told = "".join(run.errors)
    assert "host tokyo: its host key is not the known one" in told
    shown = re.search("remove the old key: (ssh-keygen .*)", told)[1]
    assert lab.run("sh", "-c", shown).returncode == 0
    assert known.read_text() == ""
    run = measure(MAIN)
    assert run.end() == 3, run.told()
    assert "host tokyo: its host key is unknown" in "".join(run.errors)


def test_a_server_that_takes_passwords_only_is_not_told_to_take_a_key(lab, measure):
    lab.serve("tokyo", "-o", "PubkeyAuthentication=no", "-o", "PasswordAuthentication=yes")
    lab.configure("Host tokyo\nPort 2222")
    run = measure(MAIN)
    assert run.end() == 3, run.told()
    told = "".join(run.errors)
    assert "host tokyo: permission denied: it takes no keys" in told
    assert "ssh-copy-id" not in told


def test_an_agent_that_crashes_there_ends_the_run_with_its_last_words(lab, measure, tmp_path):
    script = tmp_path / "agent.py"
    script.write_text(hostile("raise SystemError('out of luck')")[-1])
    lab.serve("tokyo", "-o", f"ForceCommand={sys.executable} -I -S {script}")
    lab.configure("Host tokyo\nPort 2222")
    run = measure(MAIN)
    assert run.end() == 3, run.told()
    assert "host tokyo: SystemError: out of luck" in "".join(run.errors)
