"""All code that is sent to a remote host. It runs there on Python 3.9, with nothing else."""
