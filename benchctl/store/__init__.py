"""SQLite: stores every sample as it arrives, and answers every query.

One file holds all runs. A run has trials, a trial has flows (one row for each attempt), a flow has
streams, a stream has samples; `schema` documents the columns. Only the runner writes a run
(`record`). Progress lines, screens and reports read it at any time (`read`). Everything is in SI
base units. Times are Unix seconds in columns named ``time``, and seconds from a named start in
those that end in ``_s``.
"""
