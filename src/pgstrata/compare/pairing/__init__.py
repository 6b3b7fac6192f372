"""Observations to pairs: arms by target and cell, the blocks that they share, and what they have in them."""
