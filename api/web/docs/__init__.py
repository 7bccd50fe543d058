"""The documentation of a running service: its root, and the interface for people."""
