"""Axes of plots: ranges, ticks, and the time that all share."""
