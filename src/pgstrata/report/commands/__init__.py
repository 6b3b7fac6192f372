"""What the other commands print: `bisect`, `decide`, `doctor`, `gate` and `host`."""
