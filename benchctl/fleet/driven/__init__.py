"""The hosts of a fleet as its coordinator drives them, and the links of runs to them."""
