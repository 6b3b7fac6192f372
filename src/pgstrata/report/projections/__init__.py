"""Projections of the matrix of environments and cells: which there are, which are drawn, and from what figures."""
