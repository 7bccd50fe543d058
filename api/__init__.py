"""The two front doors: HTTP and the command line."""
