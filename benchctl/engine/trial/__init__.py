"""One trial: its attempts, flows and commands, and what is made of their output."""
