"""`pgstrata serve`: studies and archives below a folder, as pages for one browser of this machine."""
