"""HTTP: connections, requests and answers, bodies, tokens, limits. Knows nothing of rankings."""
