"""Load generators: one folder each, with a driver (starts it, collects its files) and a parser (pure).

Workloads, servers and hosts do not belong here: a driver reaches a host only through `ports.Host`.
"""
