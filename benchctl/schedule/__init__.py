"""Profiles that are measured again and again: when, what was missed, and what has changed."""
