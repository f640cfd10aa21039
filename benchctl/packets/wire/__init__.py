"""From the octets of a file to packets: formats, link layers, tunnels."""
