"""Builds what a topology says: namespaces, devices, addresses, services."""
