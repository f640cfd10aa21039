"""Pictures of it: plots, tables and scales as text with roles. Pure."""
