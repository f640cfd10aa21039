"""Runs in other files: copied, packed for an archive, kept in the trash, rescued."""
