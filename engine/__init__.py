"""What may happen in a tournament, and the log that remembers it."""
