"""What the clients do: one folder per workload with its description, and the SQL of the data that workloads share.

How a workload is driven belongs to the drivers, how its data are cloned and kept to the datasets.
"""

from pgstrata.workloads.descriptions import builtin_workloads

__all__ = ["builtin_workloads"]
