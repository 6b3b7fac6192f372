"""A live server in words: what its recorder says, why it was slow, what a window holds."""
