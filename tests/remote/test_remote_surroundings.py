"""Remote hosts as they are found: noisy, old, limited, without Python, with a full disk."""

import os
import signal
import subprocess
import sys

import pytest
from remote.measured import MAIN, PING
from remote_lab import NEEDS, PORT
from waiting import wait_until

pytestmark = NEEDS

# From here, paris is reached by a server of its own.
OTHER = "Host paris\nPort 2222"
# The login shell gets the command as its argument after -c.
AS_SHELL = 'ForceCommand={} -c "$SSH_ORIGINAL_COMMAND"'


def measured(measure, text=MAIN):
    run = measure(text)
    assert run.end() == 0, run.told()
    assert [flow["status"] for flow in run.of("flow_ended")] == ["ok"]


LOGINS = {
    "csh": AS_SHELL.format("csh"),
    "fish": AS_SHELL.format("fish"),
    "prints": 'ForceCommand=echo welcome; exec sh -c "$SSH_ORIGINAL_COMMAND"',
    "banner": "Banner=/etc/passwd",
    "one-session": "MaxSessions=1",
    "slow": 'ForceCommand=sleep 0.5; exec sh -c "$SSH_ORIGINAL_COMMAND"',
}


@pytest.mark.tool("csh", "fish")
def test_a_host_measures_whatever_its_login_is_like(lab, measure):
    """Each login is a host of its own, which is paris."""
    hosts = ways = ""
    for port, (name, option) in enumerate(LOGINS.items(), PORT):
        lab.serve("paris", "-o", option, port=port)
        ways += f"Host {name}\nHostName paris\nPort {port}\n"
        hosts += f'[hosts.{name}]\nssh = "{name}"\naddress = "paris"\n'
    lab.configure(ways)
    each = f"[axes]\nfrom = {[*LOGINS]}\n"
    run = measure(PING.replace('from = "paris"\n', "") + hosts + each)
    assert run.end() == 0, run.told()
    trials = {trial["point"]["from"]: trial["status"] for trial in run.of("trial_ended")}
    assert trials == dict.fromkeys(LOGINS, "ok")


def test_a_login_that_is_refused_because_others_log_in_is_tried_again(lab, measure):
    lab.serve("paris", "-o", "MaxStartups=1:100:1")
    lab.configure(OTHER)
    # A login that never comes takes the only place.
    code = (
        "import socket; other = socket.create_connection(('paris', 2222)).makefile('rb'); "
        "other.readline(); print(1, flush=True); other.read()"
    )
    with subprocess.Popen(
        [*lab.over, sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=True
    ) as other:
        assert other.stdout.readline() == b"1\n"
        run = measure(PING)
        wait_until(lambda: "MaxStartups throttling" in lab.log("paris"), lambda: lab.log("paris"))
        os.killpg(other.pid, signal.SIGKILL)
    assert run.end() == 0, run.told()


def refused(run, *words):
    assert run.end() == 3, run.told()
    said = "".join(run.errors)
    assert "Traceback" not in said
    for word in words:
        assert word in said, said


def test_a_host_without_python_is_named_with_what_to_do(lab, measure):
    lab.serve("paris", "-o", "SetEnv=PATH=/nonexistent")
    lab.configure(OTHER)
    refused(measure(MAIN), "host paris: it has no python3", "install Python 3.9")


def test_an_unknown_host_key_is_an_error_with_the_command_that_mends_it(lab, measure):
    lab.configure("Host paris\nGlobalKnownHostsFile /dev/null\nUserKnownHostsFile /dev/null")
    refused(measure(MAIN), "host paris: its host key is unknown", "ssh paris")


def test_a_key_that_is_not_accepted_is_an_error_with_the_command_that_mends_it(lab, measure):
    lab.serve("paris", "-o", "AuthorizedKeysFile=/dev/null")
    lab.configure(OTHER)
    refused(measure(MAIN), "host paris: permission denied", "ssh-copy-id paris")


def test_a_host_that_does_not_listen_is_an_error(lab, measure):
    lab.configure(OTHER)
    refused(measure(MAIN), "host paris: it refuses connections")


def test_a_full_disk_is_no_matter_for_what_writes_nothing(lab, measure):
    lab.serve("paris", within=FULL)
    lab.configure(OTHER)
    assert "No space left" in lab.ssh("paris", "head -c 9999 /dev/zero >/tmp/file").stderr
    measured(measure)


@pytest.mark.tool("iperf3")
def test_a_tool_that_needs_the_disk_says_that_it_is_full(lab, measure):
    lab.serve("paris", within=FULL)
    lab.configure(OTHER)
    text = MAIN.replace("simpleperf", "iperf3").replace("100ms", "1s")
    run = measure(f"{text}[run]\nattempts = 1\n")
    assert run.end() == 1
    for flow in run.of("flow_ended"):
        assert "free some in /tmp" in flow["hint"], flow


# In a mount namespace of the server's own, as its own root.
FULL = (
    "unshare", "--user", "--map-root-user", "--mount", "sh", "-c",
    "mount -t tmpfs -o size=4k full /tmp; head -c 9999 /dev/zero >/tmp/full 2>/dev/null; "
    'exec unshare --user --map-user=1000 --map-group=1000 "$@"', "sh",
)  # fmt: skip


def test_a_jump_host_on_a_router_is_on_the_way(lab, measure):
    lab.serve("middle")
    lab.configure("Host paris\nProxyJump middle\nHost middle\nPort 2222")
    measured(measure, PING)
