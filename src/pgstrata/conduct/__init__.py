"""The loop over a plan, through ports only: loop, visit, run; and what is derived from a run's evidence.

How a server is started, a dataset cloned or a driver driven does not belong here, nor any statistics over runs.
"""
