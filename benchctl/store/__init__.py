"""SQLite: every sample as it arrives, and every question afterwards.

One file holds all runs. A run has trials, a trial has flows (one row for each attempt), a flow has
streams, a stream has samples; `schema` says what each column means. Only the runner writes a run
(`record`); the progress line, the screens and the reports are readers (`read`), at any time.
Everything is in SI base units; times are Unix seconds where a column says ``time`` and seconds
from a named start where it ends in ``_s``.
"""
