"""One session: its clock, its sockets, and the packets that are sent, received and reflected."""
