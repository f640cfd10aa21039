"""What `benchctl doctor` finds on remote hosts."""
