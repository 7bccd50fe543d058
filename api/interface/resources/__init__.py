"""The resources of a tournament: for each its shape, how it is rendered, and its operations."""
