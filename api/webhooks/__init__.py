"""Who is told of the events of a tournament elsewhere, as they are committed."""
