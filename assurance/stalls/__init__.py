"""Asks every operation and page at the documented limits, and says how long each holds up the others."""
