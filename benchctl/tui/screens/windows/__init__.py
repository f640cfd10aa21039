"""Windows over a screen: a trial, the hosts' facts, packets."""
