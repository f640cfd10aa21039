"""The writes of a run as messages, for copies of the store elsewhere."""
