"""Plots, tables and scales as text with roles. Pure."""
