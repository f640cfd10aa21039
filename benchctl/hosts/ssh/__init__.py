"""Remote hosts by OpenSSH: the login, the agent's other end, and plain shells in its place."""
