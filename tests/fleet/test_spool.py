"""The spool of a host: nothing is lost before it is committed, and the disk stays within bounds."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchctl.fleet.messages import EndRef
from benchctl.fleet.spool import (
    Spool,
    Spooled,
    SpoolRecord,
    packed_record,
    records_in,
    sync_and_close,
)

ENDS = [EndRef("run", n, 1, "bulk", role) for n in range(3) for role in ("client", "server")]
SMALL = {"most_bytes": 4000, "reserved_bytes": 1000, "segment_bytes": 700}
records = st.builds(
    SpoolRecord,
    st.sampled_from(Spooled),
    st.sampled_from(ENDS),
    st.integers(1, 99),
    st.binary(max_size=50),
)


@given(st.lists(records, max_size=8), st.integers(0, 1000), st.binary(max_size=30))
def test_a_torn_end_of_a_segment_takes_none_of_the_records_before(written, cut, garbage):
    texts = [packed_record(record) for record in written]
    data = b"".join(texts)
    found = [record for _, _, record in records_in(data[:cut] + b"")]
    whole, size = 0, 0
    for text in texts:
        size += len(text)
        whole += size <= cut
    assert found == written[: min(whole, len(written))]
    assert [record for _, _, record in records_in(data + garbage)][: len(written)] == written


@given(st.binary(max_size=200))
def test_garbage_is_no_record(data):
    list(records_in(data))


@given(st.binary(min_size=1, max_size=40), st.integers(0, 400), st.integers(1, 255))
def test_a_flipped_bit_is_seen(body, place, flip):
    data = bytearray(packed_record(SpoolRecord(Spooled.RESULT, ENDS[0], 1, body)))
    data[place % len(data)] ^= flip
    assert list(records_in(bytes(data))) == []


steps = st.lists(
    st.one_of(
        st.tuples(
            st.just("add"), st.sampled_from(Spooled), st.sampled_from(ENDS), st.integers(0, 300)
        ),
        st.tuples(st.just("commit"), st.sampled_from(ENDS), st.integers(0, 20)),
        st.tuples(st.just("close"), st.sampled_from(ENDS)),
        st.tuples(st.just("killed")),
    ),
    max_size=40,
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(steps)
def test_what_was_taken_stays_until_it_is_committed_through_any_restart(tmp_path_factory, steps):
    folder = tmp_path_factory.mktemp("spool")
    spool = Spool(folder, **SMALL)
    there = {}  # (end, number): body, of what must be there
    last = dict.fromkeys(ENDS, 0)
    dropped = 0
    for step in steps:
        match step:
            case ("add", kind, ref, size):
                last[ref] += 1
                body = bytes([last[ref] % 256]) * size
                if spool.add(kind, ref, last[ref], body) is None:
                    dropped += 1
                elif kind is not Spooled.MARK:
                    there[ref, last[ref]] = body
            case ("commit", ref, number):
                spool.commit(ref, number)
                there = {key: b for key, b in there.items() if key[0] != ref or key[1] > number}
            case ("close", ref):
                spool.close_end(ref)
                there = {key: b for key, b in there.items() if key[0] != ref}
            case ("killed",):
                spool = Spool(folder, **SMALL)
        found = {(kept.ref, kept.number): spool.body(kept) for kept in spool.pending()}
        assert there.items() <= found.items()
        files = sum(path.stat().st_size for path in folder.glob("*.segment"))
        assert files == spool.state.used_bytes <= SMALL["most_bytes"]
    if ("killed",) not in steps:
        assert found == there if steps else True
        assert spool.state.dropped == dropped


def test_samples_leave_room_for_results(tmp_path):
    spool = Spool(tmp_path, **SMALL)
    number = 0
    while spool.add(Spooled.SAMPLES, ENDS[0], number + 1, bytes(100)):
        number += 1
    assert spool.state.dropped == 1
    assert spool.add(Spooled.RESULT, ENDS[0], number + 1, bytes(100))
    assert spool.state.messages == number + 1


def test_a_spool_that_is_committed_takes_nothing_of_the_disk(tmp_path):
    spool = Spool(tmp_path, **SMALL)
    for number in range(1, 20):
        spool.add(Spooled.SAMPLES, ENDS[0], number, bytes(100))
    spool.commit(ENDS[0], 19)
    assert spool.state.used_bytes == 0
    assert sum(path.stat().st_size for path in tmp_path.glob("*.segment")) == 0


def test_the_mark_of_an_end_outlives_its_messages(tmp_path):
    spool = Spool(tmp_path)
    spool.add(Spooled.MARK, ENDS[0], 0, b"")
    spool.add(Spooled.SAMPLES, ENDS[0], 1, b"x")
    spool.commit(ENDS[0], 1)
    assert [*Spool(tmp_path).account.kept] == [ENDS[0]]
    spool.close_end(ENDS[0])
    assert [*Spool(tmp_path).account.kept] == []


WRITER = """
import sys
from pathlib import Path
from benchctl.fleet.messages import EndRef
from benchctl.fleet.spool import Spool, Spooled
spool = Spool(Path(sys.argv[1]))
for number in range(1, 10**9):
    spool.add(Spooled.SAMPLES, EndRef("run", 0, 1, "bulk", "client"), number, b"%d" % number)
    print(number, flush=True)
"""


def test_what_a_killed_agent_had_taken_is_there(tmp_path):
    program = [sys.executable, "-c", textwrap.dedent(WRITER), str(tmp_path)]
    with subprocess.Popen(program, stdout=subprocess.PIPE) as writer:
        said = [int(writer.stdout.readline()) for _ in range(500)]
        writer.kill()
        said += [int(line) for line in writer.stdout.read().split(b"\n")[:-1] if line]
    spool = Spool(tmp_path)
    bodies = [spool.body(kept) for kept in spool.pending()]
    assert bodies[: len(said)] == [b"%d" % number for number in said]
    assert len(bodies) <= len(said) + 1


def test_a_power_cut_costs_only_samples_since_the_last_sync(tmp_path, monkeypatch):
    disk = {}

    def synced(descriptor):
        (path,) = (
            one for one in tmp_path.iterdir() if one.stat().st_ino == os.fstat(descriptor).st_ino
        )
        disk[path.name] = path.read_bytes()

    monkeypatch.setattr("benchctl.fleet.spool._sync", synced)
    spool = Spool(tmp_path, **SMALL)
    for number in range(1, 13):  # in several segments
        assert spool.add(Spooled.SAMPLES, ENDS[0], number, bytes(100))
    sync_and_close(spool.unsynced())
    assert spool.unsynced() is None
    spool.add(Spooled.SAMPLES, ENDS[0], 13, b"with its result")
    spool.add(Spooled.RESULT, ENDS[0], 14, b"at once")
    assert spool.unsynced() is None
    spool.add(Spooled.SAMPLES, ENDS[0], 15, b"too late")
    for path in tmp_path.glob("*.segment"):
        path.write_bytes(disk.get(path.name, b""))
    assert [kept.number for kept in Spool(tmp_path, **SMALL).pending()] == [*range(1, 15)]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has /dev/full")
def test_a_full_disk_drops_and_counts(tmp_path):
    spool = Spool(tmp_path)
    spool.add(Spooled.SAMPLES, ENDS[0], 1, b"x")
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, spool._file)
    os.close(full)
    assert spool.add(Spooled.RESULT, ENDS[0], 2, b"y") is None
    assert spool.state.dropped == 1
    assert [kept.number for kept in spool.pending()] == [1]
