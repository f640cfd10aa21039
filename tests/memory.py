"""What a thing may keep of what it is fed."""

import tracemalloc
from contextlib import contextmanager


@contextmanager
def at_most(limit_bytes):
    """Fail when more memory than that is held at the end than at the beginning."""
    tracemalloc.start()
    try:
        yield
        held_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held_bytes <= limit_bytes, f"{held_bytes} bytes are held"
