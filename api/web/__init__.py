"""Pages for people: the board, and the files that make it live."""
