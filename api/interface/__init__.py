"""The interface: its operations, how they are parsed, answered and described."""
