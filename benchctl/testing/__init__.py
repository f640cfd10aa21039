"""For authors of plugins: the contract as a report and as tests, and transcripts of real runs.

The names here are as stable as those of `benchctl.api`, and importing them loads nothing else of
benchctl.
"""

from benchctl.testing.transcript import Transcript

__all__ = ["Transcript"]
