import struct
from collections import Counter, deque

import pytest
from hypothesis import given
from hypothesis import strategies as st
from owamp.two_way_parts import ERROR, FORMATS, NOON_NS, SECOND_NS, SOURCE, HandClock

from benchctl_owamp.simpleowamp.measuring.allowance import Allowances
from benchctl_owamp.simpleowamp.measuring.quota import Limits
from benchctl_owamp.simpleowamp.measuring.reflector import IDLE_S, Reflector
from benchctl_owamp.simpleowamp.protocol.layouts import REFLECTED, STAMP
from benchctl_owamp.simpleowamp.protocol.two_way import Sha256Seal, stamp_format, twamp_format
from benchctl_standalone.addresses import parse_network


@pytest.fixture(params=FORMATS.values(), ids=FORMATS)
def form(request):
    return request.param


class Monotonic:
    def __init__(self):
        self.ns = 0

    def __call__(self):
        return self.ns


def reflector_of(form, monotonic=None, peer=None, sessions=100, **limits):
    allowances = Allowances(Limits(**limits), monotonic or Monotonic())
    return Reflector(form, HandClock(), allowances, peer, sessions)


def bits(packet):
    """Return what a packet counts: with headers of IPv6 and UDP."""
    return 8 * (48 + len(packet))


def probes(form, count, padding_bytes=0):
    writer = form.probes(padding_bytes)
    return [writer.write(seq, NOON_NS, ERROR) for seq in range(count)]


def numbers(answers):
    return [None if answer is None else int.from_bytes(answer[:4], "big") for answer in answers]


@pytest.mark.parametrize("padding_bytes", [0, 31, 35, 300, 1400])
def test_an_answer_is_as_long_as_its_probe(form, padding_bytes):
    [probe] = probes(form, 1, padding_bytes)
    answer = reflector_of(form).answer(probe, SOURCE, NOON_NS, 255)
    assert len(answer) == len(probe) >= form.least_bytes


@given(size=st.integers(0, 200), seed=st.randoms(use_true_random=False))
def test_whatever_comes_no_answer_is_longer(size, seed):
    packet = bytes(seed.randrange(256) for _ in range(size))
    for form in FORMATS.values():
        answer = reflector_of(form).answer(packet, SOURCE, NOON_NS, 255)
        assert answer is None or len(answer) == size
        assert answer is None or size >= REFLECTED.size


def test_what_is_no_probe_is_ignored_and_counted(form):
    reflector = reflector_of(form)
    [probe] = probes(form, 1)
    for packet in (b"", b"\0", probe[:40]):
        assert reflector.answer(packet, SOURCE, NOON_NS, 255) is None
    assert (reflector.answered, reflector.ignored) == (0, 3)


def test_probes_without_room_for_an_answer_get_a_hint_once():
    """twampy's default is 14 octets (RFC 5357, section 4.1.2, without padding)."""
    said = []
    allowances = Allowances(Limits(), Monotonic())
    reflector = Reflector(twamp_format(), HandClock(), allowances, warn=said.append)
    [probe] = probes(twamp_format(), 1)
    for packet in (b"x", probe[:14], probe[:14]):
        assert reflector.answer(packet, SOURCE, NOON_NS, 255) is None
    assert said == [
        "probes of 14 octets get no answer, which has 41 or more:"
        " let their sender add 27 octets of padding"
    ]


@pytest.mark.parametrize("at", [0, 20, 95, 111])
def test_a_signed_probe_of_another_key_or_with_a_changed_octet_gets_no_answer(at):
    [other] = probes(stamp_format(b"another key"), 1)
    [probe] = probes(FORMATS["signed"], 1)
    changed = bytearray(probe)
    changed[at] ^= 1
    reflector = reflector_of(FORMATS["signed"])
    assert reflector.answer(other, SOURCE, NOON_NS, 255) is None
    assert reflector.answer(bytes(changed), SOURCE, NOON_NS, 255) is None
    assert reflector.answer(probe, SOURCE, NOON_NS, 255)


def test_a_signature_is_the_first_half_of_hmac_sha_256():
    # The second source: openssl dgst -sha256 -mac hmac -macopt key:"a key", of the 96 octets.
    [probe] = probes(FORMATS["signed"], 1)
    seal = Sha256Seal(b"a key", 112)
    assert seal.seal(b"\0\0\0\1" + bytes(108))[96:].hex() == "4a12c3f5686eb6302096c2064eb0b30f"
    assert seal.open(probe) == probe


def test_each_sender_has_numbers_of_its_own(form):
    reflector = reflector_of(form)
    packets = probes(form, 3)
    other = (SOURCE[0], SOURCE[1] + 1)
    for source in (SOURCE, other):
        answers = [reflector.answer(probe, source, NOON_NS, 255) for probe in packets]
        assert numbers(answers) == [0, 1, 2]


def test_a_sender_that_was_silent_for_long_begins_anew():
    monotonic = Monotonic()
    reflector = reflector_of(FORMATS["stamp"], monotonic)
    [probe] = probes(FORMATS["stamp"], 1)
    answers = [reflector.answer(probe, SOURCE, NOON_NS, 255)]
    for pause_s in (IDLE_S, IDLE_S + 1):
        monotonic.ns += int(pause_s * SECOND_NS)
        answers.append(reflector.answer(probe, SOURCE, NOON_NS, 255))
    assert numbers(answers) == [0, 1, 0]


def test_a_session_that_was_agreed_with_one_peer_answers_no_other(form):
    reflector = reflector_of(form, peer=SOURCE)
    [probe] = probes(form, 1)
    for other in (("192.0.2.8", SOURCE[1]), (SOURCE[0], 9)):
        assert reflector.answer(probe, other, NOON_NS, 255) is None
    assert reflector.answer(probe, SOURCE, NOON_NS, 255)


def test_a_client_beyond_its_rate_is_not_answered_and_others_are(form):
    monotonic = Monotonic()
    [probe] = probes(form, 1)
    reflector = reflector_of(form, monotonic, client_rate_bps=10 * bits(probe))

    def answered(source, count):
        answers = [reflector.answer(probe, source, NOON_NS, 255) for _ in range(count)]
        return sum(answer is not None for answer in answers)

    # More ports are no more clients, nor are more addresses of one IPv6 network.
    assert sum(answered((SOURCE[0], port), 3) for port in range(1, 8)) == 10
    assert answered(("2001:db8::1", 9, 0, 0), 7) + answered(("2001:db8::2", 9, 0, 0), 7) == 10
    monotonic.ns += SECOND_NS // 2
    assert answered(SOURCE, 20) == 5


def test_what_a_client_sends_beyond_its_rate_of_packets_is_not_even_read(form, monkeypatch):
    monotonic, read = Monotonic(), []
    read_probe = form.read_probe
    monkeypatch.setattr(form, "read_probe", lambda packet: read.append(1) or read_probe(packet))
    reflector = reflector_of(form, monotonic, client_rate_pps=10)
    [probe] = probes(form, 1)

    def answered(source, packets):
        answers = [reflector.answer(packet, source, NOON_NS, 255) for packet in packets]
        return sum(answer is not None for answer in answers)

    # What is no probe takes time, too, and more ports are no more clients.
    assert answered(SOURCE, [b"no probe"] * 4) == 0
    assert answered((SOURCE[0], 9), [probe] * 20) == 6
    assert len(read) == 10
    assert answered(("192.0.2.8", 9), [probe] * 20) == 10
    monotonic.ns += SECOND_NS // 2
    assert answered(SOURCE, [probe] * 20) == 5


def test_a_host_that_floods_is_shut_out_for_a_second(form):
    monotonic = Monotonic()
    reflector = reflector_of(form, monotonic, client_rate_pps=20)

    def send(source, count):
        for _ in range(count):
            reflector.answer(b"no probe", source, NOON_NS, 255)
        return reflector.shut_out()

    assert send(("192.0.2.8", 9), 25) == ()
    assert send(SOURCE, 25) == ()
    assert send((SOURCE[0], 9), 1) == (SOURCE[0],)  # all ports are one client
    monotonic.ns += SECOND_NS - 1
    assert reflector.shut_out() == (SOURCE[0],)
    monotonic.ns += 1
    assert send(SOURCE, 25) == ()
    assert send(SOURCE, 1) == (SOURCE[0],)
    monotonic.ns += SECOND_NS - 1
    reflector.keep_out()
    monotonic.ns += SECOND_NS - 1
    assert reflector.shut_out() == (SOURCE[0],)
    monotonic.ns += 1
    assert reflector.shut_out() == ()


def test_more_hosts_than_a_filter_holds_are_not_shut_out(form):
    reflector = reflector_of(form, client_rate_pps=1)
    for host in range(100):
        for _ in range(5):
            reflector.answer(b"no probe", (f"192.0.2.{host}", 9), NOON_NS, 255)
    assert len(reflector.shut_out()) == 64


def test_all_clients_together_have_a_rate(form):
    [probe] = probes(form, 1)
    reflector = reflector_of(form, rate_bps=20 * bits(probe))
    sources = [(f"192.0.2.{host}", 9) for host in range(1, 41)]
    answers = [reflector.answer(probe, source, NOON_NS, 255) for source in sources]
    assert sum(answer is not None for answer in answers) == 20


A, B = ("192.0.2.1", 862), ("192.0.2.2", 862)


def exchanged(answering, packets):
    """Let what answers exchange packets with each other; returns how many answers there were.

    ``packets`` are on their way: (data, source, target).
    """
    on_the_way, answers = deque(packets), 0
    while on_the_way and answers < 10_000:
        data, source, target = on_the_way.popleft()
        answer = answering[target](data, source)
        if answer is not None:
            answers += 1
            on_the_way.append((answer, target, source))
    return answers


def answers_of(form):
    """Return what a reflector answers, its clock going on by a microsecond each time."""
    clock = HandClock()
    reflector = Reflector(form, clock, Allowances(Limits(client_rate_pps=10**9), Monotonic()))

    def answer(packet, source):
        clock.ns += 1000
        return reflector.answer(packet, source, clock.ns, 255)

    return answer


def other_maker():
    """Return what another maker's responder answers: it numbers by sender, and pads with zeros.

    As twampy's of Nokia, whose answers have a size of their own.
    """
    numbers = Counter()

    def answer(packet, source):
        number = numbers[source]
        numbers[source] += 1
        time = struct.pack("!Q", 7 + sum(numbers.values()))
        head = struct.pack("!L", number) + time + struct.pack("!HH", 1, 0) + time
        return head + packet[:14] + bytes(8)

    return answer


@pytest.mark.parametrize("count", [1, 100])
@pytest.mark.parametrize("target", ["itself", "ours", "another's"])
def test_a_forged_source_lets_no_reflectors_answer_each_other_for_ever(form, target, count):
    source = A if target == "itself" else B
    answering = {A: answers_of(form)}
    answering.setdefault(source, other_maker() if target == "another's" else answers_of(form))
    forged = [(probe, source, A) for probe in probes(form, count)]
    assert exchanged(answering, forged) == 2 * count


def test_a_sender_beside_a_reflector_at_the_same_port_goes_on(form):
    here = answers_of(form)
    answers = [here(probe, B) for probe in probes(form, 5)]
    assert numbers(answers) == [0, 1, 2, 3, 4]
    # Its reflector answers what it took for a probe, its sender sends its own.
    assert here(answers_of(form)(answers[2], A), B) is None
    assert numbers([here(probe, B) for probe in probes(form, 3)]) == [5, 6, 7]


def test_a_sender_may_fill_its_probes_with_the_answers_that_it_got():
    form = FORMATS["twamp"]
    here = answers_of(form)
    packet = probes(form, 1)[0]
    for seq in range(1, 5):
        answer = here(packet, B)
        assert answer is not None
        packet = form.probes().write(seq, NOON_NS + seq, ERROR)[:14] + answer[14:]


def test_sessions_take_bounded_memory_and_the_longest_idle_goes_first(form):
    reflector = reflector_of(form, sessions=3)
    [probe] = probes(form, 1)
    sources = [(f"192.0.2.{host}", 9) for host in range(1, 4)]
    for source in (*sources, sources[0], ("192.0.2.9", 9)):
        reflector.answer(probe, source, NOON_NS, 255)
    again = [reflector.answer(probe, source, NOON_NS, 255) for source in (sources[0], sources[1])]
    assert numbers(again) == [2, 0]


def test_only_clients_of_the_allowed_networks_are_answered(form):
    reflector = reflector_of(form, networks=(parse_network("192.0.2.0/24"),))
    [probe] = probes(form, 1)
    assert reflector.answer(probe, SOURCE, NOON_NS, 255)
    assert reflector.answer(probe, ("198.51.100.1", 9), NOON_NS, 255) is None


def test_a_ttl_that_the_system_does_not_tell_is_255():
    [probe] = probes(FORMATS["stamp"], 1)
    assert reflector_of(FORMATS["stamp"]).answer(probe, SOURCE, NOON_NS, None)[40] == 255


def test_the_ssid_and_the_extensions_of_a_stamp_sender_come_back():
    probe = STAMP.pack(seq=3, ssid=0x1234) + b"\x80\x01\x00\x04abcd"
    answer = reflector_of(FORMATS["stamp"]).answer(probe, SOURCE, NOON_NS, 255)
    assert answer[14:16] == b"\x12\x34"
    assert answer[44:] == b"\x80\x01\x00\x04abcd"
