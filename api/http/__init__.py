"""HTTP: connections, requests and answers, bodies, limits. Knows nothing of rankings."""
