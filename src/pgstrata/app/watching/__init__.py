"""`pgstrata watch`: a recorder of a live server that only reads there, and goes on whatever happens to it."""
