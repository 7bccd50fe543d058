"""The interface: how operations are declared, parsed, answered and described."""
