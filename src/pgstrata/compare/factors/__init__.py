"""Several environments at once: steps along ordered factors, and what crossed ones do."""
