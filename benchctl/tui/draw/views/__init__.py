"""What stands beside the plots: flows, runs, goals, tiles, verdicts."""
