"""What is observed around the measured window: raw text before and after it, and pure parsers of the two.

One folder per source. Each has a sampler, which reads through `ports.Host` or `ports.Sql`, and a parser.
"""
