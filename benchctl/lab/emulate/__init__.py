"""Moves frames over emulated links, by the kernel's disciplines or by a process of ours."""
