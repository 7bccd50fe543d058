"""Pages for people: the board, and the files that it is made live with."""
