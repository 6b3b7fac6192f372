"""The made-up day that `explain` is timed on: whole, slow where it has to be, and with a host that changed before."""

import importlib
from pathlib import Path

import pytest

from pgstrata.model.archive import Span
from pgstrata.store.archives.reader import ArchiveReader

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture
def day():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCH)
        module = importlib.import_module("recorded_day")
        patch.setattr(module, "HOUR", 120)
        patch.setattr(module, "DAY", 24 * 120)
        yield module


def mean(window, name):
    return sum(window.rates[name]) / len(window.rates[name])


def test_all_hours_are_there_and_those_that_are_slow_differ(day, tmp_path):
    day.make_hours(tmp_path / "a")
    day.make_slow(tmp_path / "a", 1200, 1440)
    with ArchiveReader.open(tmp_path / "a") as reader:
        facts = reader.facts()
        assert facts.span == Span(begin=day.BEGIN, end=day.BEGIN + day.DAY)
        before, slow, lead = (
            reader.window(Span(begin=day.BEGIN + begin, end=day.BEGIN + end), facts)
            for begin, end in ((0, 1080), (1200, 1440), (1200 - day.LEAD, 1200))
        )
        minutes = reader.courses(Span(begin=day.BEGIN + 1200, end=day.BEGIN + 1440), facts, most=4)
    load = [sum(map(sum, window.sessions.values())) / sum(window.looks) for window in (before, slow, lead, minutes)]
    assert load == pytest.approx([200, 400, 200, 400], rel=0.05)
    assert mean(slow, "commits") / mean(before, "commits") == pytest.approx(0.75, rel=0.05)
    for window in (slow, lead):
        assert mean(window, "host_user_cpu") / mean(before, "host_user_cpu") == pytest.approx(1.5, rel=0.05)
    assert len(slow.statements) == 100
    assert len(slow.relations) == 200
    assert slow.statements["q7"].calls == 100 * 24
    assert not before.gaps
