"""Readers of files that other programs write: each a pure function from the bytes of a file to what it would make."""
