"""simpleowamp: measures one-way and round-trip delay with nothing but Python's standard library.

This package is the stand-alone tool. It runs on Python 3.9 and newer, imports nothing outside the
standard library, and can be run by its path: ``python3 path/to/simpleowamp/__main__.py``. The
encrypted and authenticated modes need `cryptography`, which is imported when one is asked for.

Rules of the package:

- `timestamps`, `layouts`, `schedule`, `records`, `ciphers`, `control_client` and `control_server`
  are pure: no sockets, no threads, no clock.
- Modules import each other by ``from .module import name``: what makes one file of them finds the
  order by it.
- No dataclasses: importing them costs more time than the rest of the start.
"""

__version__ = "1.0.0"
