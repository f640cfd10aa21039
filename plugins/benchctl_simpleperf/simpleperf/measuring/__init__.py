"""One measurement: its streams, sockets, pacing and intervals."""
