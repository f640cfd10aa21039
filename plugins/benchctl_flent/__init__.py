"""Data files of flent: read, and written (https://flent.org/data-format.html, version 4)."""
