"""What is looked at before a measurement: network, tools, sessions, ports, machine."""
