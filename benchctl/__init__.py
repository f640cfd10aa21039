"""benchctl: a declarative network benchmark runner for the terminal."""

__version__ = "0.1.0"
