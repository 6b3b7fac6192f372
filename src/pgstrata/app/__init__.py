"""Use cases, one file each; `wiring` is the only place where things are wired together. Nothing here prints."""
