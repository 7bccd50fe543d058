"""The log: how events are written, hashed, appended in groups, and read."""
