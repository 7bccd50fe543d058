"""The board: the fold that answers are made from, with its positions. Pure."""
