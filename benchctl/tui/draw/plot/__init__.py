"""Plots in cells: lines, bars, heat, distributions, packets."""
