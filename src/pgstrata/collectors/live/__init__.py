"""What a recorder asks of a live server each second and each ten, and how its answers are read. Pure."""
