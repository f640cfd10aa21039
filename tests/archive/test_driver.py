"""Arrays of numbers, beside those that psycopg makes one number after another."""

import math
import struct
from array import array

from hypothesis import given
from hypothesis import strategies as st
from psycopg.adapt import PyFormat, Transformer
from psycopg.pq import Format

from benchctl.archive.driver import Floats, FloatsLoader, Ints, IntsLoader

INTS = st.lists(st.integers(-(2**31), 2**31 - 1))


def theirs(values, kind):
    """Return the same array as psycopg sends it."""
    transformer = Transformer()
    transformer.set_dumper_types([kind], Format.BINARY)
    return bytes(transformer.dump_sequence([values], [PyFormat.BINARY])[0])


@given(st.lists(st.floats()))
def test_floats_are_sent_as_psycopg_sends_them_and_come_back(values):
    sent = Floats(array).dump(array("d", values))
    assert sent[20:] == b"".join(struct.pack("!id", 8, value) for value in values)
    if not any(map(math.isnan, values)):
        assert sent == theirs(values, 1022)
    assert FloatsLoader(1022).load(sent).tobytes() == array("d", values).tobytes()


@given(INTS)
def test_integers_are_sent_as_psycopg_sends_them_and_come_back(values):
    sent = Ints(array).dump(array("i", values))
    assert sent == theirs(values, 1007)
    assert [*IntsLoader(1007).load(sent)] == values
