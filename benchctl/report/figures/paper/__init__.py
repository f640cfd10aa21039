"""Draws figures as SVG, PNG and PDF, by Matplotlib."""
