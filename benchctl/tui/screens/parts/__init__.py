"""Parts that screens share: lists, plots, steering, rows of the history."""
