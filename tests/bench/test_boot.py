"""What the benchmark of boots takes for a visit: events as a study tells them, without a machine."""

import importlib
from pathlib import Path

import pytest

from pgstrata.ports.events import Event, EventKind

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture(scope="module")
def boot():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCH)
        yield importlib.import_module("boot")


def test_only_visits_that_booted_the_machine_count(boot, monkeypatch):
    now = 0.0
    monkeypatch.setattr(boot.time, "monotonic", lambda: now)
    moments = boot.Moments()
    for now, text in (
        (5, "prepare"), (6, "assert"), (9, "measure"), (20, "booting vm:x: 6.12, 1 GB, 2 CPUs, cache none"),
        (50, "assert"), (60, "measure"), (70, "assert"), (75, "measure"),
    ):  # fmt: skip
        if text == "assert":
            moments.reached = now - 15
        moments.emit(Event(kind=EventKind.STEP, text=text))
    moments.emit(Event(kind=EventKind.NOTE, text="booting the virtual machine"))
    assert moments.visits == [boot.Visit(ssh=15, server=30, transaction=40)]
