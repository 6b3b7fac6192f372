"""A study on disk: evidence files, and a catalogue that can always be rebuilt from them.

What belongs here: the layout of a study's folder, commits that survive a kill or a full disk, the lock, loading.
How evidence becomes a run record does not belong here: callers hand in that function.
"""
