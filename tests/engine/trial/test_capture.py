"""The packets of a flow are recorded at its ends while it runs, and belong to its run."""

import json
from contextlib import closing

import pytest
from engine.fakes import GOOD, SERVER, Script
from engine.virtual import NETWORK, flow
from msgspec.structs import replace

from benchctl.engine.site.site import Site
from benchctl.hosts.sent.filter import packet_filter
from benchctl.run.planned import Host, Network, PacketCapture
from benchctl.store.captures import captures_of
from benchctl.store.copies.copy import copy_run
from benchctl.store.database import writing
from benchctl.store.manage import delete_run
from benchctl.store.read import Reader

BOTH = PacketCapture(("from", "to"), 96, 1_000_000)
FAR = Network({**NETWORK.hosts, "far": Host("far", "10.0.0.2", shares_ports=False)}, NETWORK.peers)


def counts(packets, dropped=0, left_out=0):
    return json.dumps(
        {"event": "end", "packets": packets, "dropped": dropped, "left_out": left_out}
    )


def recorder(said=None, **more):
    """A recorder that is ready after a moment, and says something when it is asked to end."""
    ready = [(0.1, json.dumps({"event": "recording"}))]
    return Script(ready, None, on_signal=0, says_on_signal=said or counts(7), **more)


def captured(capture=BOTH, **more):
    return replace(flow(to="far", **more), capture=capture)


def scripts(**recorders):
    named = {f"--name {name}": script for name, script in recorders.items()}
    return {**named, "client": GOOD, "server": SERVER}


def test_both_ends_are_recorded_before_the_client_starts_and_until_it_has_ended(measure):
    said = scripts(local=recorder(counts(12)), far=recorder(counts(11, dropped=1)))
    done = measure(said, captured(), site=Site(FAR))
    assert done.status == "ok"
    words = [word for command in done.commands for word in command if word in ("client", "--name")]
    assert words == ["--name", "--name", "client"]
    asked = next(command for command in done.commands if "--name" in command)
    program = [list(one) for one in packet_filter(["10.0.0.2"], 96)]
    assert json.loads(asked[asked.index("--filter") + 1]) == program
    assert asked[asked.index("--snaplen") + 1] == "96"
    here, there = done.last.captures
    assert (here.host, here.packets, here.dropped) == ("local", 12, 0)
    assert (there.host, there.packets, there.dropped) == ("far", 11, 1)
    ended_s = [at_s for at_s, what, name in done.log if what == "SIGTERM" and "--name" in name]
    client_s = [at_s for at_s, what, name in done.log if what == "begin" and "client" in name]
    assert min(ended_s) >= client_s[0] + GOOD.ends_s
    [note] = [one.text for one in done.reader.notes(done.trial.run_id) if one.flow_id]
    assert note == "trial 1, main: packets at far: 11 packets, 1 lost by the recorder"


def test_one_end_is_recorded_once_if_both_are_one_host(measure):
    done = measure(scripts(local=recorder()), replace(flow(), capture=BOTH))
    assert [one.host for one in done.last.captures] == ["local"]


def test_a_flow_without_capture_starts_no_recorder(measure):
    done = measure(scripts(), flow())
    assert (done.status, done.last.captures) == ("ok", ())


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (
            Script([(0.1, json.dumps({"event": "error", "message": "no permission"}))], 0.2, 1),
            "no permission",
        ),
        (Script([], 0.1, 1), "its recorder did not start"),
        (OSError(12, "Cannot allocate memory"), "Cannot allocate memory"),
    ],
)
def test_a_flow_whose_packets_cannot_be_recorded_fails_and_says_why(measure, script, why):
    said = scripts(local=script, far=recorder())
    done = measure(said, captured(PacketCapture(("from",), 96, 1_000_000)), site=Site(FAR))
    assert done.status == "failed"
    assert done.last.error == f"the packets of local cannot be recorded: {why}"
    assert not any("client" in command for command in done.commands)


def test_a_recorder_that_dies_leaves_the_flow_its_result(measure):
    dies = Script([(0.1, json.dumps({"event": "recording"}))], 0.5, code=-9)
    done = measure(scripts(local=dies, far=recorder()), captured(), site=Site(FAR))
    assert done.status == "ok"
    assert [one.host for one in done.last.captures] == ["far"]
    [note] = [one.text for one in done.reader.notes(done.trial.run_id) if one.flow_id]
    assert note == "trial 1, main: packets at local: none: its recorder was killed"


def test_what_a_killed_recorder_has_left_is_kept(measure):
    dies = Script([(0.1, json.dumps({"event": "recording"}))], 0.5, code=-9)
    finishes = Script([(0.1, counts(4))], 0.2)
    done = measure({"--finish": finishes, **scripts(local=dies)}, replace(flow(), capture=BOTH))
    assert [(one.host, one.packets) for one in done.last.captures] == [("local", 4)]
    [note] = [one.text for one in done.reader.notes(done.trial.run_id) if one.flow_id]
    assert note == "trial 1, main: packets at local: 4 packets: its recorder was killed"


def test_a_recorder_whose_disk_is_full_says_so(measure):
    full = json.dumps({**json.loads(counts(9, left_out=3)), "message": "No space left on device"})
    done = measure(scripts(local=recorder(full)), replace(flow(), capture=BOTH))
    assert [one.packets for one in done.last.captures] == [9]
    [note] = [one.text for one in done.reader.notes(done.trial.run_id) if one.flow_id]
    assert note == (
        "trial 1, main: packets at local: 9 packets, 3 more than it was to keep: "
        "No space left on device"
    )


def test_a_copy_of_a_run_keeps_what_was_found_in_its_packets(measure, tmp_path):
    done = measure(scripts(local=recorder()), replace(flow(), capture=BOTH))
    copy = tmp_path / "copy.sqlite"
    with writing(copy):
        pass
    copied = copy_run(tmp_path / "runs-0.sqlite", done.trial.run_id, copy)
    with closing(Reader(copy)) as reader:
        [trial] = reader.trials(copied)
        [captured] = [one.captures for one in reader.flows(trial.id)]
    assert len(captured) == 1
    assert captured == done.last.captures


def test_the_files_of_a_run_are_deleted_with_it(measure, tmp_path):
    done = measure(scripts(local=recorder()), replace(flow(), capture=BOTH))
    [one] = done.last.captures
    store = tmp_path / "runs-0.sqlite"
    run = done.reader.run(done.trial.run_id)
    file = store.parent / one.file
    assert file.parent == captures_of(store, run.name)
    assert file.parent.is_dir()
    file.touch()
    delete_run(store, run.id)
    assert not file.parent.parent.exists()
