"""TOML whose every value knows its file and line, and what is wrong with one in a sentence."""
