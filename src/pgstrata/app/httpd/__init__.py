"""A small HTTP server in threads of its own, for what pgstrata offers at an address of this machine: GET and HEAD."""
