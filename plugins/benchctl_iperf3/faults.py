"""The known faults in iperf3's figures, by version, each with its place in iperf3's source.

A parser that works around one names it. If a figure was left out or replaced, ``message`` is the
message for the user: ``cannot be: iperf3 takes back every loss that a server before 3.14 reports``.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """A wrong figure of iperf3: the versions that report it, and its cause in the source."""

    versions: str
    source: str
    message: str = ""


FIRST_INTERVAL = Fault(
    "all to 3.21",
    # iperf_reset_stats sets the stream's start and clears its bytes, but keeps the end of the
    # interval before, from which iperf_stats_callback computes length and datagrams. The negative
    # start is printed without its sign (iperf_time_diff). Which timer fires first is a question of
    # microseconds (create_client_timers, create_client_omit_timer).
    "src/iperf_api.c: 3196 and 3244 in 3.12, 3730 and 3780 in 3.21",
)
OMITTED_LOSSES = Fault(
    "clients before 3.14, and later ones of servers before 3.14",
    # The client subtracts its own count of omitted losses, a sender's 0, from the server's total.
    "src/iperf_api.c: 3658 in 3.12, 2921 in 3.21; fixed by commit 87cef993",
    "an iperf3 before 3.14 at either end counts the omitted losses as measured ones",
)
UNDONE_LOSSES = Fault(
    "clients from 3.14 on, of servers before 3.14",
    # If the server does not report omitted losses, all of them are taken for omitted.
    "src/iperf_api.c: 2923 in 3.21",
    "iperf3 takes back every loss that a server before 3.14 reports",
)
UNSENT = Fault(
    "clients from 3.14 on, of servers before 3.14",
    # If the server does not report omitted datagrams, all of them are taken for omitted.
    "src/iperf_api.c: 2948 in 3.21",
    "iperf3 counts no datagram that a server before 3.14 sends",
)
OMITTED_SENT = Fault(
    "clients before 3.14",
    # The client subtracts its own count of omitted datagrams, a receiver's, from the server's
    # total.
    "src/iperf_api.c: 3656 in 3.12; fixed by commit 87cef993",
    "an iperf3 before 3.14 counts the datagrams that were lost or under way when the omitted part"
    " ended as sent after it",
)
COPIED_COUNT = Fault(
    "servers before 3.2",
    # It takes the client's count for its own before it sends that.
    "src/iperf_api.c: 1631 in 3.1.7",
    "a server before 3.2 reports as sent what the client has received and lost",
)
OTHER_TIMES = Fault(
    "3.7 to 3.21, data both ways",
    # The times of the first stream stand for all: the client's as a sender, the server's as a
    # receiver. For what the server sends, they are swapped.
    "src/iperf_api.c: 3606 and 3620 in 3.12, 4174 and 4204 in 3.21",
    "with data both ways, iperf3 divides what arrived at the client by the server's time, and what"
    " the server sent by the client's",
)
UNTIMED = Fault(
    "servers before 3.2",
    "src/iperf_api.c: 1520 in 3.1.7; fixed by commit 10e2cc24",
    "a server before 3.2 does not report for how long it counted; its bytes are divided by the"
    " sender's time, also those that were in a queue when that ended",
)
FIRST_JITTER = Fault(
    "receivers before 3.8",
    # The previous transit time is 0 before the first datagram. Before 3.7 the clock is that of the
    # day, and that of newer senders began when their machine did.
    "src/iperf_udp.c: 114 in 3.1.7; fixed by commit 2609dd71",
    "a receiver before 3.8 takes the difference of the two clocks for the first jitter",
)
EARLY_END = Fault(
    "all to 3.21",
    # The server closes the connections when it hears of the end.
    "src/iperf_client_api.c: 663 in 3.12, 771 in 3.21",
    "iperf3 ends when the last byte is in the sender's buffer, and counts what has arrived by then",
)
EARLY_COUNT = Fault(
    "all to 3.21",
    # Its count begins before it tells the client to send, and ends when the client's message
    # arrives.
    "src/iperf_server_api.c: 931 and 948 in 3.21",
    "a server's count begins a round trip before the first datagram arrives",
)
LATE_START_S = 0.04
"""TCP_DELACK_MIN of Linux (include/net/tcp.h)."""
LATE_START = Fault(
    "servers before 3.10",
    # A second message permits the client to send, and Nagle's algorithm delays that until the first
    # one is acknowledged, `LATE_START_S` later.
    "src/iperf_server_api.c: 627 and 648 in 3.9; fixed by commit 97a1d11a",
    "a server before 3.10 starts counting 40 ms before the client sends",
)
LATE_END = Fault(
    "clients from 3.16 on",
    # Threads send, and the loop that checks for the end sleeps until its next timer.
    "src/iperf_client_api.c: 617 in 3.16, 684 in 3.21",
    "iperf3 from 3.16 on notices that all bytes are sent only at the end of an interval of at"
    " least 0.1 s; the rate is that of the intervals before the last, if any",
)
CONTROL_MSS = Fault(
    "all to 3.21",
    # The initial segment size of the control connection, not that of the data.
    "src/iperf_api.c: 925 in 3.12, 1025 in 3.21",
)
NO_BIDIR = Fault(
    "servers before 3.7",
    # They ignore "bidirectional" in the parameters (commit 0778f04c).
    "src/iperf_api.c, get_parameters",
    "the server is older than 3.7 and cannot measure both directions at once",
)
