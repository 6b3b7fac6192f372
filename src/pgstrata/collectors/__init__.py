"""What is observed around the measured window: raw text before and after it, and pure parsers of the two.

One module or folder per source. What captures reads through `ports.Host` or `ports.Sql` only; what parses is pure.
"""
