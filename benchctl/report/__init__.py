"""A run as one value, its tables and exports, and the progress of one that goes on.

`report` reads a run from the store as one frozen `Report`, which tables, exports, screens and
comparisons take.
"""
