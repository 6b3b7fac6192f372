"""pgstrata finds which layer changed PostgreSQL's performance, by how much and how surely."""

__version__ = "0.1.0"
