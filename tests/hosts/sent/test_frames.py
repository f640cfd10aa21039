"""What the runner and an agent say arrives as it was sent, however it is cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.hosts.sent.frames import FrameReader, frame

MOST_BODY = 300
words = st.text(max_size=20)
heads = st.dictionaries(words, st.none() | st.booleans() | st.integers() | words, max_size=4)
messages = st.lists(st.tuples(heads, st.binary(max_size=MOST_BODY)), max_size=6)


@given(messages, st.data())
def test_messages_arrive_whole_however_they_are_cut(said, data):
    octets = b"".join(frame(head, body) for head, body in said)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(octets)), max_size=8)))
    frames, heard = FrameReader(MOST_BODY), []
    for begin, end in zip([0, *cuts], [*cuts, len(octets)], strict=True):
        heard += frames.feed(octets[begin:end])
    assert heard == said


@given(messages)
def test_messages_arrive_byte_by_byte(said):
    octets = b"".join(frame(head, body) for head, body in said)
    frames = FrameReader(MOST_BODY)
    assert [one for octet in octets for one in frames.feed(bytes([octet]))] == said


@given(st.binary(min_size=8, max_size=200))
def test_anything_else_is_refused_or_waits_for_more(octets):
    frames = FrameReader(MOST_BODY)
    try:
        heard = frames.feed(octets)
    except ValueError:
        return
    assert all(isinstance(head, dict) for head, _ in heard)


@pytest.mark.parametrize("octets", [b"Welcome to paris", frame([1]), b"\0\0\0\1\0\0\0\0x"])
def test_what_is_no_message_is_refused(octets):
    with pytest.raises(ValueError, match=r"."):
        FrameReader(MOST_BODY).feed(octets)
