"""The state behind the screens: a run as far as it is known. Pure; independent of the terminal."""
