"""Competitions from files, and imports taken back."""
