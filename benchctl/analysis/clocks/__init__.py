"""What one-way delays show of the clocks of the two ends."""
