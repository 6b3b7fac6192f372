"""What the scatter of a study comes to: between runs that must not differ, and within them."""
