"""From an experiment and a seed to the ordered runs, with forecasts; and the plans that are refused.

What belongs here: designs, order, identities, forecasts of time and disk, refusals. Nothing is touched and nothing is
looked up: the same experiment and seed give the same plan on every machine of the same size.
"""

from pgstrata.plan.design import auto_warmup, warmup_of
from pgstrata.plan.load import data_of, workload_of
from pgstrata.plan.make import make_plan

__all__ = ["auto_warmup", "data_of", "make_plan", "warmup_of", "workload_of"]
