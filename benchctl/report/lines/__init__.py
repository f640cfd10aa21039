"""What commands print and screens show alike: lines of text with roles, such as "bad". Pure."""
