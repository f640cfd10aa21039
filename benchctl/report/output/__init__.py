"""Where a result goes, and in which format."""
