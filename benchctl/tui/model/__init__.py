"""What is shown: a run as it is known so far. Pure; knows no terminal."""
