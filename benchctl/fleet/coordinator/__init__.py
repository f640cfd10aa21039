"""The coordinator: one process that measures with the hosts of a fleet, and answers its people."""
