"""A window of a live server against another one: was it slower, where the extra load is, behind whom. Pure."""
