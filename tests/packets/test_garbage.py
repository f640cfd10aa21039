"""Damaged traces, from the file to what is printed: no exception, and every line is JSON."""

import json
from types import SimpleNamespace

from hypothesis import given, settings
from hypothesis import strategies as st
from packets.slow import slow
from packets.written import pcapng

from benchctl.packets.findings import connection_entry, exchange_entry, trace_entry
from benchctl.packets.trace import read_trace
from benchctl.report.text.packets_text import connection_text, exchanges_text, head_lines, overview

TRACE = slow()[:12_000]
BLOCKS = pcapng([(n * 1000, bytes(range(n, n + 60))) for n in range(90)])
PLACES = st.integers(24, len(BLOCKS) - 1)


@settings(max_examples=50)
@given(
    st.sampled_from([TRACE, BLOCKS]),
    st.lists(st.tuples(PLACES, st.binary(min_size=1, max_size=8)), max_size=30),
    PLACES,
)
def test_a_damaged_trace_is_shown_as_far_as_it_can_be_read(tmp_path_factory, data, damage, cut):
    changed = bytearray(data)
    for at, octets in damage:
        changed[at : at + len(octets)] = octets
    path = tmp_path_factory.getbasetemp() / "damaged.pcap"
    path.write_bytes(changed[: max(cut, len(changed) - cut)])
    trace = read_trace(path)
    shown = SimpleNamespace(
        head=trace_entry(trace),
        connections=[connection_entry(n, one) for n, one in enumerate(trace.connections, 1)],
        exchanges=[exchange_entry(one) for one in trace.frames.exchanges.values()],
    )
    json.dumps([shown.head, shown.connections, shown.exchanges], allow_nan=False)
    assert [*head_lines(shown.head), overview(shown.connections), exchanges_text(shown.exchanges)]
    assert all(map(connection_text, shown.connections))
