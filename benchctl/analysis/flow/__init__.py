"""The samples of one flow: its figures, events, limits and laws."""
