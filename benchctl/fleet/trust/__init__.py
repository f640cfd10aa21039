"""Keys, signatures and certificates of a fleet. All but reading and writing files is pure."""
