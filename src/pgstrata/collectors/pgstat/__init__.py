"""The server's own statistics: `sampler` takes them by the SQL of the server's version, `parse` reads two of them."""
