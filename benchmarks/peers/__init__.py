"""What Tallybook is measured against: a limit that nobody can pass, and what others would build instead.

Each server here is told on standard input, as JSON, what it serves; it takes the same requests and, but for the
ceiling, gives the same answers from what it keeps.
"""
