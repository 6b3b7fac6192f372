"""Runs with sampled stacks."""

from __future__ import annotations

from hypothesis import strategies as st

from pgstrata.model.attribution import RunStacks

CELL = "simple-update-s10-c2"
BASE = {
    "session;main;PostgresMain;exec_simple_query;ExecAgg": 300,
    "session;main;PostgresMain;exec_simple_query": 200,
    "session;main;PostgresMain;gone_function": 100,
    "checkpointer;main;BufferSync": 40,
}
MORE = {**BASE, "session;main;PostgresMain;exec_simple_query;ExecAgg": 600, "checkpointer;main;BufferSync": 41}
del MORE["session;main;PostgresMain;gone_function"]

paths = st.lists(st.sampled_from(["a", "b", "c", "d"]), min_size=1, max_size=6).map(";".join)
stacks = st.dictionaries(paths, st.integers(1, 1000), min_size=1, max_size=30)


def run_stacks(environment, block, found, *, cell=CELL, seconds=1e-7, **changes) -> RunStacks:
    return RunStacks(environment=environment, cell=cell, block=block, seconds=seconds, stacks=found, **changes)


def side(environment, found, blocks=6) -> list[RunStacks]:
    """Blocks that differ a little."""
    return [
        run_stacks(environment, block, {stack: count + block % 3 for stack, count in found.items()})
        for block in range(1, blocks + 1)
    ]
