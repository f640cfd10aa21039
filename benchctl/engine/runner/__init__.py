"""The process that measures a run: its start, its signals, and the hosts that it has to itself."""
