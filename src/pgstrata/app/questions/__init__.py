"""What `pgstrata init QUESTION` writes: a file for each question, whose first line says in a comment what is asked."""
