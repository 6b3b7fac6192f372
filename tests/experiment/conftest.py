from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from pgstrata.errors import ExperimentError, Problem
from pgstrata.experiment.parse import parse_experiment
from pgstrata.model.experiment import Experiment
from pgstrata.model.plan import HostCapacity
from pgstrata.model.workload import DataKind, Workload

FILES = {"mine.sql": "SELECT 1;\n", "empty.sql": " \n", "setup.sql": "CREATE INDEX ON t (a);\n"}


def _workload(name: str, *, builtin: bool = True) -> Workload:
    return Workload(
        name=name,
        title=name,
        data=DataKind(name="pgbench", title="", unit="", bytes_per_scale=16 * 1024**2),
        writes=name != "select-only",
        builtin=name if builtin else "",
        hot_row_per_scale=name == "tpcb-like",
    )


@pytest.fixture(scope="session")
def workloads() -> Mapping[str, Workload]:
    builtin = {name: _workload(name) for name in ("select-only", "simple-update", "tpcb-like")}
    return {**builtin, "custom": _workload("custom", builtin=False)}


@pytest.fixture(scope="session")
def capacity() -> HostCapacity:
    return HostCapacity(memory=32 * 1024**3, cpus=4, free_disk=100 * 1024**3)


@pytest.fixture(scope="session")
def parse(workloads) -> Callable[..., Experiment]:
    def read_file(name: str) -> str:
        if name not in FILES:
            raise FileNotFoundError(name)
        return FILES[name]

    def run(text: str, **more: object) -> Experiment:
        return parse_experiment(text, "e.toml", **{"read_file": read_file, "workloads": workloads, "cpus": 4, **more})

    return run


@pytest.fixture(scope="session")
def problems(parse) -> Callable[[str], tuple[Problem, ...]]:
    def run(text: str) -> tuple[Problem, ...]:
        with pytest.raises(ExperimentError) as caught:
            parse(text)
        return caught.value.problems

    return run
