"""Questions about a tournament and their answers, as values that every door renders."""
