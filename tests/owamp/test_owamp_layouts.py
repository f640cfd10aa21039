"""The tables of layouts: their sizes are the RFC's, and they write what they read."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl_owamp.simpleowamp.protocol import layouts
from benchctl_owamp.simpleowamp.protocol.layouts import Layout

# RFC 4656, sections 3.1, 3.5, 3.7, 3.8, 3.9 and 4.1.2.
SIZES = {
    "GREETING": 64, "SET_UP_RESPONSE": 164, "SERVER_START": 48, "REQUEST_SESSION": 112, "SLOT": 16,
    "HMAC": 16, "ACCEPT_SESSION": 48, "START_SESSIONS": 32, "START_ACK": 32, "STOP_SESSIONS": 16,
    "SESSION_DESCRIPTION": 24, "SKIP_RANGE": 8, "FETCH_SESSION": 48, "FETCH_ACK": 32, "RECORD": 25,
    "TEST": 14, "TEST_SECURE": 48,
}  # fmt: skip
LAYOUTS = {name: one for name, one in vars(layouts).items() if isinstance(one, Layout)}


@pytest.mark.parametrize("name", SIZES)
def test_a_layout_is_as_long_as_the_rfc_says(name):
    assert LAYOUTS[name].size == SIZES[name]


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=str)
@given(data=st.data())
def test_a_layout_reads_what_it_writes_and_writes_what_it_reads(layout, data):
    octets = data.draw(st.binary(min_size=layout.size, max_size=layout.size))
    fields = layout.unpack(octets)
    written = layout.pack(**fields)
    assert layout.unpack(written) == fields
    assert tuple(fields.values()) == next(layout.unpack_rows(octets))
    assert layout.pack_row(fields.values()) == written
    # What was not a field was written as zeros.
    assert all(new in (old, 0) for old, new in zip(octets, written, strict=True))


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=str)
def test_a_layout_refuses_less_than_its_size_and_fields_it_has_not(layout):
    with pytest.raises(struct.error):
        layout.unpack(bytes(layout.size - 1))
    with pytest.raises(KeyError, match=f"{layout.name} has no colour"):
        layout.pack(colour=1)


def test_fields_stand_where_the_rfc_draws_them():
    greeting = layouts.GREETING.pack(modes=7, challenge=b"c" * 16, salt=b"s" * 16, count=1024)
    assert greeting == (
        bytes(12) + b"\0\0\0\7" + b"c" * 16 + b"s" * 16 + b"\0\0\4\0" + bytes(12)
    )  # fmt: skip
    record = layouts.RECORD.pack(
        seq=1, send_error=2, receive_error=3, send_time=4, receive_time=5, ttl=6
    )
    assert record.hex() == "00000001000200030000000000000004000000000000000506"
