"""Accounting: where the time of a transaction goes in a window, and where a difference comes from. Pure.

What belongs here: arithmetic on what was sampled and counted, for a window of a study and one of a server's history
alike. Which windows are compared is not decided here.
"""
