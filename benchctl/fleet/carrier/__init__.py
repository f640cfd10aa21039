"""Carries messages between the coordinator, hosts and people."""
