"""Runs side by side, and the history of a figure."""
