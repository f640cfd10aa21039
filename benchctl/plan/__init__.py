"""Profile, topology and backends become a planned run: pure, nothing is asked of any host.

`matrix` makes the points; `targets` finds what their values write, and `bind` makes a trial of a
point; `plan` does both for all points, and orders the trials. `expectations` and `reported` read
the figures that a profile brings along, and `promise` works out what theory expects.
"""
