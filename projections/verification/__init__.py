"""Everything that checks the log and what was made from it."""
