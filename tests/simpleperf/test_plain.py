"""The plain protocol: where a stream ends, whatever it carries and however it is cut."""

from hypothesis import given
from hypothesis import strategies as st

from benchctl_simpleperf.simpleperf.plain import GOODBYE, PlainStream

# Payloads made of the letters of BYE, so that most of them hold it somewhere.
TRICKY = st.lists(st.sampled_from([b"B", b"Y", b"E", b"BYE", b"x"]), max_size=40).map(b"".join)


def cut(data, offsets):
    bounds = sorted({0, len(data), *(offset % (len(data) + 1) for offset in offsets)})
    return [data[start:end] for start, end in zip(bounds, bounds[1:], strict=False)]


@given(TRICKY, st.lists(st.integers(0, 200)))
def test_a_stream_that_ends_with_bye_counts_all_before_it_however_it_is_cut(payload, offsets):
    stream = PlainStream()
    for piece in cut(payload + GOODBYE, offsets):
        stream.feed(piece)
    assert stream.at_goodbye
    assert stream.payload_bytes == len(payload)


@given(TRICKY.filter(lambda data: not data.endswith(GOODBYE)), st.lists(st.integers(0, 200)))
def test_a_bye_that_something_follows_is_payload(payload, offsets):
    stream = PlainStream()
    for piece in cut(payload, offsets):
        stream.feed(piece)
    assert not stream.at_goodbye
    assert stream.payload_bytes == len(payload)
