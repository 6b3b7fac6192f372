"""Pages of `pgstrata serve`: the list of studies, and what is put around reports."""
