"""Tournaments in memory: one, all of a process, and the read barrier."""
