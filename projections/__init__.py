"""What the log means: standings, lists, tables."""
