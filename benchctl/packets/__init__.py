"""Packet traces: what happened inside each connection.

A trace is read in one pass and in bounded memory. `capture` knows the formats of files, `frames`
the headers in a packet, `connections` whose segment it is. `tcp` is the fold over the segments of
one connection: segments in, findings out, no I/O and no clock. A `sending.HalfConnection` is for
the data of each end, which says what was sent again and why, and a `waiting.Waiting`, which says
what its sender waited for. Who wants each moment, not only sums, gives them a `seen.Seen`.

Times are seconds since the first packet of the trace; `capture.Capture.began_ns` is its Unix time.
Nothing here raises for what a file contains: what cannot be read is a fault in words, and counted.
"""
