"""Programs that measure Tallybook side by side with its peers and its limits; `bench.py` runs them."""
