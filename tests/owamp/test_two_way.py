import struct

import pytest
from owamp.two_way_parts import ERROR, FORMATS, NOON_NS, SOURCE, HandClock, TwoWay, reflector_of

from benchctl_owamp.simpleowamp.protocol.layouts import (
    REFLECTED,
    REFLECTED_SECURE,
    STAMP,
    STAMP_REFLECTED,
    STAMP_REFLECTED_SECURE,
    STAMP_SECURE,
    TEST,
    TEST_SECURE,
)
from benchctl_owamp.simpleowamp.protocol.two_way import stamp_format, twamp_format

# Where the fields begin: from the pointers in owamp 5.2.3, endpoint.c, run_reflector(), for TWAMP,
# and from the figures of RFC 8762, 4.3, for STAMP.
ANSWERS = {
    REFLECTED: (0, 4, 12, 16, 24, 28, 36, 40, 41),
    STAMP_REFLECTED: (0, 4, 12, 16, 24, 28, 36, 40, 44),
    REFLECTED_SECURE: (0, 16, 24, 32, 48, 64, 72, 80, 112),
    STAMP_REFLECTED_SECURE: (0, 16, 24, 32, 48, 64, 72, 80, 112),
}


@pytest.mark.parametrize("layout", ANSWERS, ids=lambda layout: layout.name)
def test_the_fields_of_an_answer_are_where_other_programs_have_them(layout):
    *starts, size = ANSWERS[layout]
    packed = layout.pack(
        seq=0x01020304,
        time=0x1112131415161718,
        error=0x2122,
        received_time=0x3132333435363738,
        sender_seq=0x41424344,
        sender_time=0x5152535455565758,
        sender_error=0x6162,
        sender_ttl=0x71,
    )
    kinds = "IQHQIQHB"
    values = [
        struct.unpack_from(f"!{kind}", packed, at)[0]
        for kind, at in zip(kinds, starts, strict=True)
    ]
    assert [f"{value:x}"[0] for value in values] == list("11234567")
    assert len(packed) == size
    assert len(packed.replace(b"\0", b"")) == 4 + 8 + 2 + 8 + 4 + 8 + 2 + 1


def test_stamps_probes_and_answers_have_the_same_size():
    assert STAMP.size == STAMP_REFLECTED.size == 44
    assert STAMP_SECURE.size == STAMP_REFLECTED_SECURE.size == 112


def test_a_probe_of_twamp_has_27_octets_of_padding_at_least():
    assert len(twamp_format().probes(0).write(0, NOON_NS, ERROR)) == 14 + 27


@pytest.mark.parametrize(("asked", "sent"), [(0, 44), (30, 44), (33, 44), (34, 48), (86, 100)])
def test_what_follows_stamps_format_is_its_extension_for_padding(asked, sent):
    probe = stamp_format().probes(asked).write(0, NOON_NS, ERROR)
    assert len(probe) == sent
    if sent > 44:
        assert probe[44:48] == bytes([0x80, 1]) + (sent - 48).to_bytes(2, "big")


@pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)
def test_padding_makes_packets_as_long_as_owamps(form):
    one_way = TEST_SECURE if form is FORMATS["signed"] else TEST
    assert len(form.probes(500).write(0, NOON_NS, ERROR)) == one_way.size + 500


def test_padding_is_random():
    one, other = (twamp_format().probes(100).write(0, NOON_NS, ERROR) for _ in range(2))
    assert one[:14] == other[:14]
    assert one[14:] != other[14:]


@pytest.mark.parametrize(("sender", "reflector"), [("stamp", "twamp"), ("twamp", "stamp")])
def test_stamp_and_twamp_light_understand_each_other(sender, reflector):
    # RFC 8762, section 4.6.
    session = TwoWay(FORMATS[sender], reflector=reflector_of(FORMATS[reflector], HandClock()))
    [back] = session.exchange([0])
    assert (back.seq, back.reflector_ttl) == (0, 253)


def test_a_shorter_answer_of_a_twamp_light_reflector_is_understood():
    session = TwoWay(FORMATS["stamp"])
    probe, sent_ns = session.probe(0)
    answer = session.reflector.answer(probe, SOURCE, sent_ns, 251)[: REFLECTED.size]
    assert session.trip.receive(answer, sent_ns, 250).reflector_ttl == 251
