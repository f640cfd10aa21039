"""The packets of flows between hosts that SSH reaches, recorded there and sent when they ended."""

import pytest
from remote.captured import CAPTURED, HOSTS, PATH_S, TOPOLOGY, as_tcpdump_records, ended
from remote.measured import MAIN
from remote_lab import NEEDS, PORT, kill
from waiting import wait_until

from benchctl.packets.trace import read_trace
from benchctl.packets.wire.frames import names_of

pytestmark = NEEDS


@pytest.fixture
def lab(labs):
    """Hosts on which who logs in is root."""
    with labs.lend(TOPOLOGY) as lab:
        for host in HOSTS:
            lab.serve_as_root(host, "/bin/sh", "-c")
        lab.configure(f"Host paris tokyo\nPort {PORT}")
        yield lab


def lost_on(lab):
    """Return how many packets the links of the measured way have lost, in both directions."""
    hops = [("west", "paris"), ("west", "middle"), ("east", "tokyo"), ("east", "middle")]
    return sum(one.dropped + one.lost for one in (lab.lab.counters(*hop) for hop in hops))


def test_losses_are_those_of_the_links_and_delays_those_of_the_way(lab, measure):
    before = lost_on(lab)
    flow, _, notes = ended(measure(CAPTURED))
    assert not notes
    lost, unknown = (
        sum(way[name] for pair in flow.paired for way in pair["directions"])
        for name in ("lost", "unknown")
    )
    # Of what left when the far recorder had ended, a late acknowledgment, nobody knows.
    assert 0 < lost <= lost_on(lab) - before <= lost + unknown
    largest = flow.paired[0]
    there, back = largest["directions"]
    # The last acknowledgment may also leave when its own recorder has ended.
    assert max(there["unseen"], back["unseen"]) <= 1
    # The clocks of a lab are one, which the run does not know.
    error_s = largest["clock_error_s"]
    assert largest["one_clock"] is False
    assert error_s > 0
    # A full queue takes as long as its frames; the emulator may be late on a busy machine.
    assert back["owd_s"]["min"] >= PATH_S - error_s
    assert there["owd_s"]["max"] >= PATH_S + 15 * 1514 * 8 / 10e6 - error_s
    assert there["owd_s"]["min"] >= PATH_S - error_s


@pytest.mark.tool("tcpdump")
def test_packets_are_the_first_of_those_of_tcpdump_if_there_are_too_many(lab, measure, tmp_path):
    text = CAPTURED.replace("true", '{ max = "100kB" }')
    with as_tcpdump_records(lab, tmp_path) as check:
        flow, files, notes = ended(measure(text))
        check(flow, files)
    assert all(one.left_out for one in flow.captures)
    assert len(notes) == 2
    assert all("more than it was to keep" in note for note in notes)


def test_a_recorder_that_is_killed_costs_its_file_and_nothing_else(lab, measure):
    before = lab.left("paris").keys()
    run = measure(CAPTURED.replace("1s", "10min") + "[run]\nattempts = 1\n")
    run.until("sample", 4)

    def recorders():
        found = lab.processes("paris")
        return [pid for pid, line in found.items() if "--snaplen" in line and "python" in line]

    kill(wait_until(recorders, lambda: lab.processes("paris")))
    run.until("sample", len(run.of("sample")) + 20)
    run.interrupt()
    flow, files, notes = ended(run, 130)
    assert flow.status == "interrupted"
    assert set(files) == {"tokyo"}
    assert notes == ["trial 1, main: packets at paris: none: its recorder was killed"]
    wait_until(lambda: lab.left("paris").keys() == before, lambda: lab.left("paris"))


# --- where SSH goes the measured way ----------------------------------------------------------


def test_the_connections_of_ssh_are_not_in_the_files(lab, measure):
    """They reach the same address, also those that pass through the other host."""
    lab.configure("Host paris\nProxyJump tokyo")
    flow, files, notes = ended(measure(f"{MAIN}capture = true\n"))
    assert not notes
    for host, file in files.items():
        ends = [names_of(one.ends) for one in read_trace(file).connections]
        ports = {end.rpartition(":")[2] for both in ends for end in both}
        assert f"{flow.port}" in ports
        assert f"{PORT}" not in ports, host


def test_a_user_who_may_not_record_is_told_what_to_do_before_anything_is_sent(
    lab, measure, tmp_path
):
    lab.configure("Host paris tokyo\nPort 22")
    run = measure(CAPTURED)
    assert run.end() == 3
    errors = "".join(run.errors)
    assert "flow main: packets cannot be recorded on paris: packet socket: " in errors
    assert "Operation not permitted" in errors
    assert "set sudo=true for the host" in errors
    assert not run.of("sample")
    profile = tmp_path / "remote-0.toml"
    examined = lab.benchctl("doctor", "--hosts", str(profile)).stdout
    assert examined.count("note packets") == 2
    assert examined.count("Operation not permitted") == 2
