"""`plan` of the largest files that it accepts, and of large ones that it refuses, takes no more than 300 MB."""

import importlib
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(BENCH)
    return importlib.import_module("largest_plan")


@pytest.mark.parametrize("name", [
    "50,000 runs in 20 environments", "50,000 runs of 500 environments with images", "1 MiB of settings, refused",
])  # fmt: skip
def test_the_largest_plans_need_little_memory(bench, name, tmp_path):
    _, memory, _ = bench.measure_plan(name, tmp_path)
    assert memory < bench.MOST_MEMORY
