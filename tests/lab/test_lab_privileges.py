"""What a command on a host of a lab sees of the machine, and what it may do to it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from lab.lab_support import topology
from waiting import wait_until

from benchctl.lab.lab import Lab

pytestmark = pytest.mark.netns

# Numbers of linux/capability.h.
NEEDED = {"net_bind_service": 10, "net_admin": 12, "net_raw": 13, "setuid": 7, "kill": 5}
NOT_NEEDED = {
    "dac_read_search": 2, "sys_module": 16, "sys_rawio": 17, "sys_ptrace": 19, "sys_admin": 21,
    "sys_boot": 22, "sys_time": 25, "mknod": 27, "setfcap": 31, "syslog": 34, "bpf": 39,
}  # fmt: skip


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    service = tmp_path_factory.mktemp("service") / "status"
    code = (
        f"cp /proc/self/status {service}; ls /sys/class/net > {service}.new;"
        f" mv {service}.new {service}.devices; exec sleep 1000"
    )
    text = f"""
[hosts.a]
services = [{{ command = ["sh", "-c", "{code}"] }}]
[hosts.b]
[links]
ab = {{ between = ["a:wired", "b:air"], rate = "10Mbit" }}
"""
    with Lab.build(topology(text)) as lab:
        lab.service = service
        wait_until(service.with_suffix(".devices").exists)
        yield lab


def output(lab, host, *argv):
    result = subprocess.run(
        [*lab.nodes[host].prefix, *argv], capture_output=True, text=True, check=True,
        start_new_session=True,
    )  # fmt: skip
    return result.stdout


def test_a_host_sees_the_processes_of_the_lab_and_no_others(lab):
    assert "benchctl.lab.keeper" in output(lab, "a", "cat", "/proc/1/cmdline")
    # A process may end between its listing and its reading.
    seen = output(lab, "a", "sh", "-c", "cat /proc/[0-9]*/cmdline 2>/dev/null || :")
    assert "benchctl.lab.keeper" in seen
    assert Path("/proc/self/cmdline").read_text() not in seen


def test_a_host_sees_its_own_devices_and_no_others(lab):
    assert output(lab, "a", "ls", "/sys/class/net").split() == ["lo", "wired"]
    assert output(lab, "b", "ls", "/sys/class/net").split() == ["air", "lo"]
    assert lab.service.with_suffix(".devices").read_text().split() == ["lo", "wired"]


def allowed(status):
    """Return what a process may have, by the lines of its /proc/PID/status."""
    fields = dict(line.split(":\t") for line in status.splitlines() if line.startswith("Cap"))
    return {name: int(fields[name], 16) for name in ("CapPrm", "CapEff", "CapBnd")}


def test_commands_and_services_have_the_capabilities_they_need_and_no_others(lab):
    for status in (output(lab, "a", "cat", "/proc/self/status"), lab.service.read_text()):
        for sets in allowed(status).values():
            assert [name for name, bit in NEEDED.items() if not sets >> bit & 1] == []
            assert [name for name, bit in NOT_NEEDED.items() if sets >> bit & 1] == []


def test_a_host_changes_settings_of_its_own_network(lab):
    assert output(lab, "a", "sysctl", "-w", "net.ipv4.tcp_sack=0").split() == [
        "net.ipv4.tcp_sack", "=", "0"
    ]  # fmt: skip
    assert output(lab, "b", "cat", "/proc/sys/net/ipv4/tcp_sack") == "1\n"


def where_proc_is_not_whole(*argv):
    """Run a command where part of /proc is covered, as containers have it."""
    cover = 'mount -t tmpfs none /proc/tty && exec "$@"'
    user = ("unshare", "--user", "--map-root-user")
    return subprocess.run(
        [*user, "--mount", "sh", "-c", cover, "sh", *user, *argv],
        capture_output=True, text=True, check=False,
        env={**os.environ, "COLUMNS": "200"},
    )  # fmt: skip


def test_where_the_kernel_refuses_a_fresh_proc_the_lab_stands_and_doctor_says_so():
    benchctl = (sys.executable, "-P", "-m", "benchctl")
    entered = where_proc_is_not_whole(
        *benchctl, "lab", "exec", "pair", "sender", "ls", "/sys/class/net"
    )
    assert entered.returncode == 0, entered.stderr
    assert "eth0" in entered.stdout
    looked = where_proc_is_not_whole(*benchctl, "doctor").stdout
    assert "note lab processes        a host sees this machine's processes" in looked
