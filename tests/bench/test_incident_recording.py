"""A short recording on a real server: everything is kept, and nothing is left."""

import importlib
import random
from contextlib import contextmanager
from pathlib import Path

import pytest

from pgstrata.store.archives.reader import ArchiveReader

BENCH = Path(__file__).parents[2] / "bench"
pytestmark = [pytest.mark.server, pytest.mark.slow]


@pytest.fixture
def incidents():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCH)
        yield lambda name: importlib.import_module(f"incidents.{name}")


@pytest.fixture
def record(incidents, monkeypatch):
    """The module, without control groups: this machine is not to be changed."""
    found = incidents("record")

    @contextmanager
    def no_groups(ledger, pids, data):
        yield incidents("groups").Limits(cpu=None, io=None, device="")

    monkeypatch.setattr(found, "own_groups", no_groups)
    return found


def command_lines():
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            yield (entry / "cmdline").read_bytes()
        except OSError:
            continue


def folders_named_in(work, incidents):
    ledgers = [incidents("ledger").Ledger(file) for file in work.glob("*/ledger.jsonl")]
    return [str(line["folder"]) for ledger in ledgers for line in ledger.lines() if "folder" in line]


def test_a_recording_has_truth_and_archive_and_leaves_nothing(incidents, record, monkeypatch, tmp_path):
    truth, used = incidents("truth"), []
    inject = record._inject

    def inject_and_look(*arguments):
        used.extend(folders_named_in(tmp_path / "work", incidents))
        inject(*arguments)

    monkeypatch.setattr(record, "_inject", inject_and_look)
    times = record.Times(quiet=(6, 6), cause=(8, 8), between=(1, 1), last=3)
    kinds = [truth.Kind.IDLE_BLOCKER, truth.Kind.CPU_QUOTA]
    name = record.draw_name(random.Random(1), "judged")
    skipped = record.record(name, tmp_path / "work", tmp_path / "data", kinds, times, random.Random(1))
    assert skipped == {truth.Kind.CPU_QUOTA}
    (folder,) = truth.load_recordings(tmp_path / "data")
    kept = truth.load_truth(folder)
    assert kept.half == "judged"
    (injection,) = kept.injections
    assert injection.kind == "idle-blocker"
    assert kept.begin + 6 <= injection.onset <= injection.end <= kept.end
    assert injection.effect.rate_before >= 0
    archive = incidents("packing").unpack(folder / truth.ARCHIVE, tmp_path / "again")
    with ArchiveReader.open(archive) as reader:
        facts = reader.facts()
        window = reader.window(facts.span, facts)
    assert any(each.application == "shop" for each in window.sessions)
    assert any(each.application == "clerk" and each.is_idle_in_transaction for each in window.sessions)
    (place,) = used
    assert not Path(place).exists()
    assert not any(place.encode() in line for line in command_lines())
    assert list((tmp_path / "work").iterdir()) == []
