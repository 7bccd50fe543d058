"""What the wheel has beside the packages: made by programs, and held to what it is made from."""
