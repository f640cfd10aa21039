"""simpleowamp: measures one-way and round-trip delay with nothing but Python's standard library.

This package is the stand-alone tool. It runs on Python 3.9 and newer, imports nothing outside the
standard library and `benchctl_standalone`, and can be run by its path: ``python3
path/to/simpleowamp/__main__.py``. `benchctl_standalone.bundle` writes it all into one file. The
authenticated and encrypted modes need `cryptography`, which is imported when one is asked for.

Rules of the package:

- `program` uses `measuring`, which uses `protocol`. All of `protocol` is pure: no sockets, no
  threads, no clock.
- Modules import each other by ``from .module import name`` or ``from ..package.module import
  name``, and shared ones by ``from benchctl_standalone.module import name``: `bundle` finds the
  order by it.
- No dataclasses: importing them costs more time than the rest of the start.
"""

__version__ = "1.0.0"
