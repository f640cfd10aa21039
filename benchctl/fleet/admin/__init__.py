"""Administers a fleet: its directory, its server and who is in it."""
