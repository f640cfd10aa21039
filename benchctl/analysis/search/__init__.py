"""Searching for the highest rate at which a condition holds."""
