"""How far a run is: its goals, its bars, the terminal's title."""
