"""From a profile to a planned run in the store: hosts, trust, volume of traffic."""
