"""Processes on this machine: started behind a gate, watched, and ended."""
