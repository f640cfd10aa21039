"""The lines of a trial over time, in bounded memory."""
