"""The schema of the database as numbered .sql files: forward only, one purpose each, never edited once released."""
