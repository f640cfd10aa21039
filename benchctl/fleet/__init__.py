"""A fleet: agents that stay on hosts, a coordinator that measures with them, people who ask it."""
