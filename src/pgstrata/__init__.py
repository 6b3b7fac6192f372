"""pgstrata finds which layer changed PostgreSQL's performance: by how much, how surely, and why."""

__version__ = "0.1.0"
