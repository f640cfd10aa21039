"""What both ends say to each other: messages, settings and results, checked. No sockets."""
