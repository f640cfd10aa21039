"""What is seen of a connection at each moment, beside the truth of transfers and the sums."""

from collections import Counter

from hypothesis import given
from packets.simulated import SIZE, Transfer
from packets.slow import slow
from packets.test_sending import PLANS, folded

from benchctl.packets.sender.seen import Cause, Seen, Sent
from benchctl.packets.trace import read_trace


class Everything(Seen):
    def __init__(self):
        self.segments, self.answers, self.moments, self.probes = [], [], [], []

    def sent(self, *one):
        self.segments.append(one)

    def heard(self, *one):
        self.answers.append(one)

    def flies(self, *one):
        self.moments.append(one)

    def probed(self, *one):
        self.probes.append(one)


def seen_in(tmp_path, data, way=0):
    """Return what is seen of the first connection of a trace, and its half."""
    path, seen = tmp_path / "trace.pcap", Everything()
    path.write_bytes(data)

    def watch(number, connection):
        if number == 1:
            connection.halves[way].seen = seen

    return seen, read_trace(path, watch).connections[0].halves[way]


@given(PLANS)
def test_every_segment_is_seen_once_as_what_it_is_counted_as(plan):
    transfer = Transfer(plan)
    seen = Everything()
    _, half = folded(transfer, seen=seen)
    hows = Counter(how for _, _, _, how in seen.segments)
    sent = [one for one in transfer.passed if one[1] == 0 and one[4] & 2 | one[5]]
    assert len(seen.segments) == len(sent)
    assert hows[Sent.LATE] == half.out_of_order
    assert hows[Sent.DOUBLED] == half.doubled
    assert hows[Sent.AGAIN] == (half.retransmissions.count() if half.retransmissions else 0)
    base = sent[0][2] if plan.handshake else sent[0][2] - 1
    assert [(one[1] + base) & 0xFFFFFFFF for one in seen.segments] == [one[2] for one in sent]


@given(PLANS)
def test_what_is_in_flight_is_never_more_than_the_senders_window(plan):
    seen = Everything()
    _, half = folded(Transfer(plan), seen=seen)
    flights = [flight for _, flight, _, _ in seen.moments]
    assert max(flights) == half.waiting.flight_bytes
    if plan.handshake:
        assert max(flights) <= plan.window * SIZE
    times = [time_s for time_s, *_ in seen.moments]
    assert times == sorted(times)


def test_a_zero_window_and_its_probes_are_seen(tmp_path):
    seen, half = seen_in(tmp_path, slow(), way=1)
    zero = [time_s for time_s, acked, edge, _ in seen.answers if edge == acked]
    assert [round(time_s, 3) for time_s in zero] == [2.635, 2.885, 3.285]
    assert [round(time_s, 3) for time_s, _ in seen.probes] == [2.835, 3.235]
    assert sum(len(blocks) for *_, blocks in seen.answers) == half.sack_blocks
    waits = [cause for _, _, window, cause in seen.moments if window == 0]
    assert set(waits) == {Cause.WINDOW}


def test_the_watched_connection_is_the_one_of_its_number(tmp_path):
    numbers = []
    path = tmp_path / "trace.pcap"
    path.write_bytes(slow())
    found = read_trace(path, lambda *one: numbers.append(one)).connections
    assert numbers == [*enumerate(found, 1)]
