"""simpleperf: measures throughput with nothing but Python's standard library.

This package is the stand-alone tool. It runs on Python 3.9 and newer, imports nothing outside the
standard library but what it shares with simpleowamp (`benchctl_standalone`), and can be run by its
path: ``python3 path/to/simpleperf/__main__.py``. ``--self`` writes it all into one file.

Rules of the package:

- `program` uses `measuring`, which uses `protocol`. All of `protocol`, and `datagrams` and
  `tcp_info` of `measuring`, are pure: no sockets, no threads, no clock.
- Modules import each other by ``from .module import name`` or ``from ..package.module import
  name``, and shared ones by ``from benchctl_standalone.module import name``: what makes one file of
  them finds the order by it.
- No dataclasses: importing them costs more time than the rest of the start.
"""

__version__ = "2.1.0"
