"""Runs a plan: ports, common start, attempts, deadlines; everything goes to the store.

The runner is a separate process (`python -P -m benchctl.engine`). It reads a planned run from the
store, measures, and writes. `launch` starts and signals it for commands and screens. `network`
resolves names to hosts and peers, `tools` looks for programs, `flow` runs one attempt of one flow,
`trial` runs all flows of a trial together, and `runner` runs all trials.
"""
