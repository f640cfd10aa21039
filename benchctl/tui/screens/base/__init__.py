"""What all screens are made of: the page, its tables, and small windows."""
