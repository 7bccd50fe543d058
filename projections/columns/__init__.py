"""How a million competitors fit in memory: columns, packed structs, and dictionaries that grow in steps. Pure."""
