"""What the stand-alone tools share: simpleperf and simpleowamp.

Like the tools, it runs on Python 3.9 and newer, and imports nothing outside the standard library
and nothing of benchctl. `bundle` writes a tool, with the modules from here that it imports, into
one file.

Modules import each other by ``from .module import name``, and tools import them by ``from
benchctl_standalone.module import name``: `bundle` finds them, and their order, by it.
"""
