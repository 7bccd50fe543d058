"""Readers of the files of other programs."""
