"""What several commands share: options, colour, completion, progress, the log."""
