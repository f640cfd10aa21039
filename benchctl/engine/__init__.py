"""Runs a plan: ports, common start, attempts, deadlines, and everything into the store.

The runner is a process of its own (`python -P -m benchctl.engine`): it reads a planned run from the
store, measures, and writes. `launch` is the other side, for the commands and screens that start it
and watch. `network` turns names into hosts and peers, `tools` looks for programs, `flow` runs one
attempt of one flow, `trial` all flows of a trial together, `runner` trial after trial.
"""
