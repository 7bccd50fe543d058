"""PostgreSQL: connections and what they must be like, migrations, the embedded cluster."""
