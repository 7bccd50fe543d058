"""What Tallybook is measured against: a limit that nobody can pass, and what others would build instead.

Each server here gets its settings as JSON on standard input. It takes the same requests and, except for the ceiling,
gives the same answers, from its own data.
"""
