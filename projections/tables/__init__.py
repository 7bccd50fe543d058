"""The relational projection: its tables and snapshots, and the workers that keep them."""
