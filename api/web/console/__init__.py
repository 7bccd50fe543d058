"""The console: pages for who has signed in with a token. They do what they do through the operations of everybody."""
