"""simpleperf: measures throughput with nothing but Python's standard library.

This package is the stand-alone tool. It runs on Python 3.9 and newer, imports nothing outside the
standard library, and can be run by its path: ``python3 path/to/simpleperf/__main__.py``. `bundle`
writes it all into one file.

Rules of the package:

- `plain`, `protocol`, `checks`, `settings`, `intervals`, `results`,
  `histogram`, `datagrams`, `tcp_info`, `units` and `addresses` are pure: no sockets, no
  threads, no clock.
- Modules import each other by ``from .module import name``: `bundle` finds the order by it.
- No dataclasses: importing them costs more time than the rest of the start.
"""

__version__ = "2.0.0"
