"""Repeats, points and runs: summaries, comparisons, expectations, trends."""
