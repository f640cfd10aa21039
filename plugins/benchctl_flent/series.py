"""What a data file of flent says about its series, as it is read and written."""

METRIC = "BENCHCTL_METRIC"
"""The key of a series' metadata that names its metric."""
RATES = ("throughput_bps", "sent_bps")
"""What a rate may be; what arrived says more than what was sent."""
STREAM = "::"
"""Between the name of a data set and the number of its stream."""
