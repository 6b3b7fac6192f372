"""A report as a tree of blocks, and the emitters that show it: in plain text, on a terminal, on a page."""
