"""An archive of a live server on disk: one SQLite database in a folder, its lock, and a reserve for a full disk."""
