"""What everybody may read of a published tournament, without a token."""
