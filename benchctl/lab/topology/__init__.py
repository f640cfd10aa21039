"""What a topology says: its model, addresses, routes, and the values that theory expects."""
