"""TOML whose every value has its file and line, and one-sentence errors for values."""
