"""What the server says in its log, placed in the time of a run."""
