"""The documents for programs."""
