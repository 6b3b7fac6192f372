"""The server's own statistics: `sampler` takes them around a run, `seconds` within it."""
