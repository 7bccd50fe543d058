"""Who may do what: tokens, their rights, and the sessions of the console that are signed in with them."""
