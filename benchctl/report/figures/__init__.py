"""Figures of a run as data: made by `making.figures_of`, of the types in `figure`."""
