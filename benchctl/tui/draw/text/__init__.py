"""Text with roles: spans, columns, glyphs, and pages made of them."""
