"""What one sender of a TCP connection did, packet by packet, and what it waited for."""
