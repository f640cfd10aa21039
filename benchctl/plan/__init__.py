"""Profile, topology and backends become a planned run. Pure: no host is asked anything.

`matrix` makes the points. `targets` resolves what their values set, and `bind` makes a trial of a
point. `plan` does both for all points, and orders the trials. `expectations` reads the figures
given in a profile, and `promise` computes the theoretical values.
"""
