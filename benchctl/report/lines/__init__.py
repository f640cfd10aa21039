"""What commands print and screens show alike: lines of text with roles, which become colours. Pure."""
