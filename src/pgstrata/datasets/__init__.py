"""Pristine data: built once per server build and scale, verified, marked, cloned before every run.

Nothing is ever removed or overwritten that does not carry pgstrata's marker. What a workload does with the data, and
how a server is started, do not belong here.
"""
