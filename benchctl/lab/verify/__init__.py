"""Measures whether links keep what the topology promises."""
