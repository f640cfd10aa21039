"""The agent that stays on a host of a fleet: it takes plans, and measures with its own backends."""
