"""iperf2 keeps the contract, whatever real runs printed and whatever it might print."""

from contextlib import suppress

import pytest
from contract import BundledContract
from hypothesis import given
from hypothesis import strategies as st
from iperf2.iperf2_support import TRANSCRIPTS, flow

from benchctl.api import ParserError, replay
from benchctl_iperf2 import BACKEND
from benchctl_iperf2.client import ClientReport
from benchctl_iperf2.rows import read_row
from benchctl_iperf2.server import ServerReport


class TestIperf2(BundledContract):
    backend = BACKEND
    transcripts = TRANSCRIPTS


@given(st.text("0123456789.-+[]/ KMGBytesbitsec%(:=)", max_size=120))
def test_a_line_is_a_row_or_none_or_a_parser_error(text):
    with suppress(ParserError):
        read_row(f"[  1] {text}")


@pytest.mark.parametrize("parser", [ClientReport, ServerReport])
@pytest.mark.parametrize(
    "line",
    [
        b"[%d] 0.0-1.0 sec  1 Bytes  8 bits/sec\n",
        b"[%d] 0.0-1.0 sec  1 datagrams received out-of-order\n",
        b"[  1] Server Report:\n[%d] 0.0-1.0 sec  1 Bytes  8 bits/sec\n",
    ],
)
def test_streams_without_end_are_a_parser_error(parser, line):
    with pytest.raises(ParserError, match="more than 256 streams"):
        replay(parser(flow(), 1.0), b"".join(line % number for number in range(999)))
