"""Why environments differ: their sampled sessions and their statements, paired as comparisons are."""
