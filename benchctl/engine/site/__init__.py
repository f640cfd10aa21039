"""Where trials take place: this machine, remote hosts, or a lab; and what prepares the hosts."""
