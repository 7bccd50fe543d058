"""The rules: events, commands, and what a command leads to in a state. Pure: no clock, no I/O."""
