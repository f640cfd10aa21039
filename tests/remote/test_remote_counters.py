"""The counters of hosts that SSH reaches, with and without Python, beside their kernels."""

import os
import shutil

import pytest
from remote.measured import MAIN
from remote_lab import NEEDS

pytestmark = NEEDS

UDP = MAIN.replace('rate = "2Mbit"', 'rate = "2Mbit"\nprotocol = "udp"')
PROGRAMS = (
    "cat", "date", "grep", "ip", "iperf3", "ln", "ls", "rm", "sh", "sleep", "uname",
)  # fmt: skip


def counted_by(lab):
    """Return what the kernels of the two ends have counted."""
    return {node: lab.lab.node_counters(node)["counts"] for node in ("paris", "tokyo")}


def is_what_the_kernels_count(trial, before, after):
    assert trial["counters"].keys() == {"paris", "tokyo"}
    for host, counted in trial["counters"].items():
        assert counted["unread"] == ""
        # Nothing but the flow sends datagrams.
        for name, count in counted["counts"].items():
            if name.startswith("udp_"):
                assert count == after[host][name] - before[host][name], (host, name)
        # SSH goes on outside of the trial.
        assert counted["counts"]["tcp_segments_sent"] > 0
        assert (
            counted["counts"]["tcp_segments_sent"]
            < after[host]["tcp_segments_sent"] - before[host]["tcp_segments_sent"]
        )
        assert counted["cpu"]["cores"] == os.cpu_count()
        assert counted["lasted_s"] > 1.0


def test_both_ends_say_what_they_counted(lab, measure):
    before = counted_by(lab)
    run = measure(UDP)
    assert run.end() == 0, run.told()
    [trial], [flow] = run.of("trial_ended"), run.of("flow_ended")
    is_what_the_kernels_count(trial, before, counted_by(lab))
    sent = trial["counters"]["paris"]["counts"]["udp_datagrams_sent"]
    assert sent >= flow["metrics"]["packets_sent"] > 0


@pytest.mark.tool("iperf3", "setsid")
def test_a_host_without_python_says_it_too(lab, measure, tmp_path):
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in PROGRAMS:
        (programs / name).symlink_to(shutil.which(name))
    lab.serve("paris", "-o", f"SetEnv=PATH={programs}")
    lab.configure("Host paris\nPort 2222")
    before = counted_by(lab)
    run = measure(UDP.replace("simpleperf", "iperf3").replace("100ms", "1s"))
    assert run.end() == 0, run.told()
    [trial] = run.of("trial_ended")
    is_what_the_kernels_count(trial, before, counted_by(lab))
