"""What pgstrata changes on a host, written down there before it happens, and undone whatever happens.

What belongs here: entries and their files, changing, undoing, restoring, and that one pgstrata at a time works on a
host. What is changed, and by which scripts, belongs to the layers.
"""
