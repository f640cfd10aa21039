"""A trace with something of everything: a download that waits for each cause, and other traffic."""

from packets.written import SACK_PERMITTED, SCALE, ethernet, ipv4, pcap, sack, tcp, udp

MSS = b"\x02\x04\x05\xb4"
SIZE = 1460
WEB = (50112, 80)
REQUEST = b"GET /big.iso HTTP/1.1\r\nHost: 10.0.0.2\r\n\r\n"


class Trace:
    """Packets, one after the other."""

    def __init__(self):
        self.packets = []
        self._ident = 0

    def tcp(self, at_s, way, seq, ack, flags=16, window=512, ports=WEB, **rest):
        self._ident += 1
        body = tcp(way, seq, ack, flags, window, ports=ports, **rest)
        frame = ethernet(ipv4(body, way, ident=self._ident))
        self.packets.append((round(at_s * 1e9), frame))

    def udp(self, at_s, way, data):
        frame = ethernet(ipv4(udp(way, data, (5000, 53)), way, protocol=17))
        self.packets.append((round(at_s * 1e9), frame))

    def file(self):
        return pcap(sorted(self.packets, key=lambda one: one[0]))


def slow():
    """Return a trace taken at the sender, 50 ms from the receiver, which opened the connection."""
    trace = Trace()
    hello = {"options": MSS + SCALE + SACK_PERMITTED, "window": 64000}
    trace.tcp(0.0, 0, 0, 0, 2, **hello)
    trace.tcp(0.00002, 1, 0, 1, 18, **hello)
    trace.tcp(0.05, 0, 1, 1)
    trace.tcp(0.05, 0, 1, 1, 24, data=REQUEST)
    asked = 1 + len(REQUEST)
    at_s, seq = 0.051, 1

    def burst(count, *, lost=()):
        """Send segments; return the acknowledgement of the whole."""
        nonlocal seq
        for n in range(count):
            trace.tcp(at_s + n * 1e-5, 1, seq, asked, size=SIZE)
            seq += SIZE
        first = min(lost, default=count)
        start = seq - count * SIZE
        for n in range(count):
            if n not in lost:
                edge = start + min(n + 1, first) * SIZE
                blocks = [(start + (first + 1) * SIZE, start + (n + 1) * SIZE)] if n > first else []
                options = sack(*blocks) if blocks else b""
                trace.tcp(at_s + 0.05 + n * 1e-5, 0, asked, edge, options=options)
        return start + first * SIZE

    for _ in range(20):  # the network
        burst(10)
        at_s += 0.051
    hole = burst(10, lost=(3,))  # a fast retransmission
    trace.tcp(at_s + 0.0501, 1, hole, asked, size=SIZE)
    trace.tcp(at_s + 0.1001, 0, asked, seq)
    at_s += 0.11
    start = seq
    trace.tcp(at_s, 1, seq, asked, size=SIZE)  # a timeout
    trace.tcp(at_s + 0.25, 1, start, asked, size=SIZE)
    seq += SIZE
    trace.tcp(at_s + 0.3, 0, asked, seq)
    at_s += 1.301  # nothing to send
    burst(2)
    at_s += 0.051
    burst(1)
    at_s += 0.051
    # The receiver stops reading: 8 segments fill its window, which is zero for a second.
    trace.tcp(at_s, 0, asked, seq, window=8 * SIZE // 128 + 1)
    size = (8 * SIZE // 128 + 1) * 128
    at_s += 0.001
    for n in range(0, size, SIZE):
        trace.tcp(at_s + n * 1e-8, 1, seq, asked, size=min(SIZE, size - n))
        seq += min(SIZE, size - n)
    trace.tcp(at_s + 0.05, 0, asked, seq, window=0)
    for probe_s in (0.25, 0.65):
        trace.tcp(at_s + probe_s, 1, seq - 1, asked)
        trace.tcp(at_s + probe_s + 0.05, 0, asked, seq, window=0)
    trace.tcp(at_s + 1.1, 0, asked, seq)
    at_s += 1.1001
    burst(4)
    at_s += 0.051
    trace.tcp(at_s, 1, seq, asked, 17)
    trace.tcp(at_s + 0.05, 0, asked, seq + 1, 17)
    trace.tcp(at_s + 0.05002, 1, seq + 1, asked + 1)
    trace.tcp(0.3, 0, 7, 0, 2, ports=(50113, 81), **hello)
    trace.tcp(0.30002, 1, 0, 8, 20, ports=(50113, 81))
    trace.udp(0.001, 0, b"where")
    trace.udp(0.002, 1, b"there, where you are")
    return trace.file()
