"""A host without Python: sessions of a real SSH server, to and from a host with an agent."""

import re
import shutil
import time
from pathlib import Path

import pytest
from remote.measured import MAIN
from remote_lab import NEEDS, kill
from waiting import wait_until

from benchctl.hosts.clocks import MOST_APART

pytestmark = [*NEEDS, pytest.mark.tool("iperf3", "setsid")]

OTHER = "Host paris\nPort 2222"
PROGRAMS = (
    "cat", "date", "grep", "ip", "iperf3", "ln", "ls", "ping", "rm", "sh", "sleep", "uname",
)  # fmt: skip
IPERF3 = MAIN.replace("simpleperf", "iperf3").replace("100ms", "1s")
BOTH = IPERF3.replace('from = "paris"\nto = "tokyo"\n', "")
BOTH += '[axes]\npair = { mesh = ["paris", "tokyo"] }\n'
MESH = BOTH.replace("[axes]", "capture = true\n[axes]")
LONG = (
    IPERF3.replace('duration = "1s"', 'duration = "10min"')
    + "[run]\nattempts = 1\npatience = '3s'\n"
)
HOSTS = ("paris", "tokyo")


def with_sh(program):
    """Return the words before a server for which alone a program is ``/bin/sh``."""
    return (
        "unshare", "--user", "--map-root-user", "--mount", "sh", "-c",
        f'mount --bind "$(command -v {program})" /bin/sh; '
        'exec unshare --user --map-user=1000 --map-group=1000 "$@"', "sh",
    )  # fmt: skip


SHELLS = [
    pytest.param(with_sh(program), id=program, marks=pytest.mark.tool(program))
    for program in ("dash", "bash", "busybox")
]


@pytest.fixture
def bare(lab, tmp_path):
    """Let paris have no Python; returns what starts its server, with more options."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in PROGRAMS:
        (programs / name).symlink_to(shutil.which(name))

    def serve(*options, within=()):
        words = [word for one in options for word in ("-o", one)]
        lab.serve("paris", "-o", f"SetEnv=PATH={programs}", *words, within=within)
        lab.configure(OTHER)

    return serve


def nothing_is_left(lab, *hosts):
    # A shell that has ended leaves a sleep for a second.
    wait_until(
        lambda: not any(lab.left(host) for host in hosts or HOSTS),
        lambda: {host: lab.left(host) for host in hosts or HOSTS},
    )


def of_benchctl(lab, host):
    """Return the same without the server's own processes for a login."""
    return {pid: line for pid, line in lab.left(host).items() if not line.startswith("sshd: ")}


def folder_of(lab):
    """Return the folder of the socket of a run that measures."""
    lines = [line for line in lab.left("here").values() if "ControlMaster=yes" in line]
    [path] = re.findall(r"ControlPath=(/tmp/benchctl-\S+)/", "".join(lines))
    return Path(path)


@pytest.mark.parametrize("within", SHELLS)
def test_a_host_without_python_measures_with_one_that_has_it(bare, within, lab, measure):
    """As the client, and as the server."""
    bare(within=within)
    run = measure(BOTH)
    assert run.end() == 0, run.told()
    pairs = {trial["point"]["pair"]: trial["status"] for trial in run.of("trial_ended")}
    assert pairs == {"paris:tokyo": "ok", "tokyo:paris": "ok"}, run.told()
    assert [flow["status"] for flow in run.of("flow_ended")] == ["ok", "ok"]
    [note] = [one["text"] for one in run.of("note") if "plain sh" in one["text"]]
    assert note.startswith("host paris: no Python 3.9 or newer there")
    nothing_is_left(lab)


def test_ctrl_c_ends_the_tools_in_order_and_keeps_what_they_measured(bare, lab, measure):
    bare()
    run = measure(LONG)
    run.until("sample", 2)
    folder = folder_of(lab)
    run.interrupt()
    assert run.end() == 130, run.told()
    [flow] = run.of("flow_ended")
    assert flow["status"] == "interrupted"
    # iperf3 prints its summary at SIGINT.
    assert flow["metrics"]["throughput_bps"] > 0, flow
    nothing_is_left(lab)
    assert not folder.exists()


def test_a_runner_that_is_killed_leaves_nothing_anywhere(bare, lab, measure):
    bare()
    run = measure(LONG)
    run.until("sample")
    folder = folder_of(lab)
    kill([run.runner])
    run.process.kill()
    run.end()
    nothing_is_left(lab, "here", *HOSTS)
    wait_until(lambda: not folder.exists())


def test_a_cut_link_ends_what_runs_there_and_the_trial_with_the_reason(bare, lab, measure):
    bare()
    run = measure(LONG)
    run.until("sample", 2)
    lab.cut("west")
    # TCP gives up minutes later.
    wait_until(lambda: not of_benchctl(lab, "paris"), lambda: lab.left("paris"))
    assert run.end() == 1
    [flow] = run.of("flow_ended")
    assert "host paris: it has been silent for" in flow["error"], flow
    nothing_is_left(lab, "here", "tokyo")


def refused(run, *words):
    assert run.end() == 3, run.told()
    said = "".join(run.errors)
    assert "Traceback" not in said
    assert said.count("error") <= 1, said
    for word in words:
        assert word in said, said


def test_what_needs_python_there_is_refused_with_what_does_not(bare, lab, measure):
    bare()
    refused(measure(MAIN), "host paris: ", "simpleperf needs Python 3.9", "as iperf3")


def test_a_server_with_too_few_sessions_is_refused_before_anything_runs(bare, lab, measure):
    bare("MaxSessions=2")
    two = IPERF3 + IPERF3.partition("[flows.main]")[2].join(("[flows.more]", ""))
    refused(measure(two), "host paris: without Python", "a trial needs 2", "MaxSessions 3")


def test_sessions_that_fit_are_no_matter(bare, lab, measure):
    bare("MaxSessions=3")
    two = IPERF3 + IPERF3.partition("[flows.main]")[2].join(("[flows.more]", ""))
    began_s = time.monotonic()
    run = measure(two)
    assert run.end() == 0, run.told()
    [trial] = run.of("trial_ended")
    clock = trial["clocks"]["paris"]
    # That of the trip that took the least time, and of what a clock may move since then.
    most_s = clock["rtt_s"] + 2 * MOST_APART * (time.monotonic() - began_s)
    assert abs(clock["offset_s"]) <= clock["error_s"] <= most_s, trial
    nothing_is_left(lab)


def lines_of(text, host):
    """Return what doctor says of a host: the words of each line by its subject."""
    part = re.search(rf"^{host}\n(.*?)(?:\n\n|\Z)", text, re.MULTILINE | re.DOTALL)[1]
    found = re.findall(r"^(ok|note) +(\S+(?: \S+)*?)  +(.*)\n?(?:    +(.*))?", part, re.MULTILINE)
    return {subject: (level, said, remedy) for level, subject, said, remedy in found}


def test_doctor_says_what_is_lost_and_what_it_cannot_try(bare, lab, tmp_path):
    bare()
    profile = tmp_path / "p.toml"
    profile.write_text(f'{MESH}[flows.other]\nbackend = "iperf2"\nduration = "1s"\n')
    done = lab.benchctl("doctor", "--hosts", str(profile))
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    paris, tokyo = lines_of(done.stdout, "paris"), lines_of(done.stdout, "tokyo")
    assert paris["python"][0] == "note"
    assert re.match("no Python 3.9 or newer there, .* lost: ", paris["python"][1])
    assert paris["iperf3 client"][0] == paris["iperf3 server"][0] == "ok"
    assert paris["iperf2 client"][0] == "note"
    assert "iperf" in paris["iperf2 client"][1]
    level, said, remedy = paris["packets"]
    assert (level, said) == ("note", "it has no Python 3.9 or newer")
    assert remedy.startswith("recording needs Linux, Python 3.9 and root there")
    needs = "a try of ports needs Python 3.9 or newer there, which this host does not have"
    assert paris["to tokyo"][:2] == ("note", f"not tried: paris could not try it: {needs}")
    assert tokyo["to paris"][:2] == (
        "note", f"not tried: no server could be started there: {needs}",
    )  # fmt: skip


def test_packets_of_a_host_without_python_are_refused_before_anything_is_sent(bare, measure):
    bare()
    run = measure(f'{IPERF3}capture = {{ hosts = ["from"] }}\n')
    refused(run, "flow main: packets cannot be recorded on paris: it has no Python 3.9 or newer")
    assert not run.of("sample")
