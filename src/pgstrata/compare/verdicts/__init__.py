"""Pairs to comparisons: which rule holds, what it came to, whether one percentage describes it, and what is doubted."""
