"""A run in words and tables of text: results, remarks, limits, routes, packets."""
