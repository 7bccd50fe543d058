"""A running service: one process, and all of them."""
