"""The command line: its commands, which database they are for, and what they print."""
