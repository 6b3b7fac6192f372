"""Which series are read of a study."""

import dataclasses

import pytest

from pgstrata.model.metrics import ROUND_TPS, Series
from pgstrata.store import catalogue
from pgstrata.store.database import transaction
from pgstrata.store.load import load_study
from pgstrata.store.study import StudyStore


@pytest.mark.parametrize(
    ("series", "expected"),
    [
        (False, []),
        (True, ["tps"]),
        ((), []),
        ((ROUND_TPS,), [ROUND_TPS]),
        ({"tps", ROUND_TPS}, ["tps", ROUND_TPS]),
        (("disk_iops",), ["disk_iops"]),
    ],
)
def test_series_are_read_by_name_or_with_their_metrics(tmp_path, bench, series, expected):
    plan = bench.plan(1)
    folder = tmp_path / "s"
    with StudyStore.create(folder, plan, "0.1.0"):
        pass
    record = bench.record(bench.header(plan.runs[0], plan), 1000.0)
    rounds = Series(metric=ROUND_TPS, times=(0.0, 0.5), values=(1.0, 2.0))
    disk = Series(metric="disk_iops", times=(1.0,), values=(5.0,), subject="data")
    connection = catalogue.open_for_writing(folder / catalogue.CATALOGUE)
    with transaction(connection):
        catalogue.save_run(connection, dataclasses.replace(record, series=(*record.series, rounds, disk)))
    connection.close()
    (run,) = load_study(folder, metrics=("tps",), series=series).runs
    assert [item.metric for item in run.series] == expected
    assert all(item.subject == ("data" if item.metric == "disk_iops" else "") for item in run.series)
    assert run.rounds() == ((1.0, 2.0) if ROUND_TPS in expected else ())
