"""The console: pages for people who have signed in with a token. They use the same operations as all clients."""
