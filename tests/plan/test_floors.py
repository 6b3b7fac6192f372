"""Which floor belongs to a cell, and when it may be relied upon."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

import records
from pgstrata.drivers.registry import driver_capabilities
from pgstrata.model.answer import ALL_CELLS
from pgstrata.model.experiment import (
    Cell,
    ConnectionKind,
    Environment,
    HostKind,
    HostSpec,
    Interleave,
    Protocol,
    Reset,
    Script,
    ServerKind,
    ServerSpec,
)
from pgstrata.model.floor import Floor, FloorKey, FloorRecord
from pgstrata.model.own_data import OwnData
from pgstrata.model.plan import HostCapacity
from pgstrata.model.reasons import Reason
from pgstrata.model.server import Fingerprint
from pgstrata.model.workload import DataKind, Workload
from pgstrata.plan import make_plan
from pgstrata.plan.floors import floor_key, make_floor
from pgstrata.report.sentences.reasons import say_reason
from pgstrata.stats.floor import noise_floor

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HERE = Fingerprint(facts={"kernel": "6.1", "cpu": "x", "machine": "m"})
CAPACITY = HostCapacity(memory=32 * 1024**3, cpus=4, free_disk=1024**4)
WORKLOADS = {
    name: Workload(
        name=name,
        title=name,
        data=DataKind(name="pgbench", title="", unit="", bytes_per_scale=16 * 1024**2),
        writes=name != "select-only",
        builtin="" if name == "custom" else name,
    )
    for name in ("select-only", "simple-update", "custom")
}
READ = Cell(workload="select-only", scale=10, clients=4, threads=2, run=10.0)
WRITE = replace(READ, workload="simple-update")
BASE = Environment(
    name="a",
    levels=(),
    server=ServerSpec(kind=ServerKind.CATALOGUE, value="16"),
    settings={"shared_buffers": "1GB", "max_connections": "100", "max_wal_size": "4GB"},
)
OTHER = replace(BASE, name="b", server=ServerSpec(kind=ServerKind.CATALOGUE, value="18"))


def plan(cells=(READ,), base=BASE, interleave=Interleave.RUNS, **more):
    fields = {
        "interleave": interleave,
        "environments": (base, OTHER),
        "cells": cells,
    }
    return make_plan(records.make_experiment(**{**fields, **more}), WORKLOADS, CAPACITY, drivers=driver_capabilities())


def digest(made, cell=None, metric="tps"):
    return floor_key(made, cell or made.experiment.cells[0].identity, metric, WORKLOADS).digest


# ---------------------------------------------------------------------------------------------------- keys


@pytest.mark.parametrize(
    "cell",
    [
        replace(READ, scale=11),
        replace(READ, clients=5),
        replace(READ, threads=1),
        replace(READ, protocol=Protocol.SIMPLE),
        replace(READ, run=11.0),
        replace(READ, warmup=0.0),
        replace(READ, rate=100.0),
        replace(READ, latency_limit=0.1),
        replace(READ, profile=True),
        replace(READ, options={"width": "10"}),
        replace(READ, workload="simple-update"),
        replace(READ, workload="mine", scripts=(Script(file="a.sql", text="SELECT 1;"),)),
    ],
)
def test_a_floor_does_not_carry_over_to_another_cell(cell):
    assert digest(plan((cell,))) != digest(plan())


@pytest.mark.parametrize(
    "base",
    [
        replace(BASE, server=OTHER.server),
        replace(BASE, connection=ConnectionKind.TCP),
        replace(BASE, checksums=False),
        replace(BASE, host=HostSpec(kind=HostKind.SSH, destination="db1")),
        replace(BASE, settings={**BASE.settings, "shared_buffers": "2GB"}),
        replace(BASE, initdb={"wal_segsize": "64"}),
        replace(BASE, options={"extra_work": "1000"}),
    ],
)
def test_a_floor_does_not_carry_over_to_another_baseline(base):
    assert digest(plan(base=base)) != digest(plan())


def test_a_floor_does_not_carry_over_to_another_metric_or_design():
    assert digest(plan(), metric="latency_p99") != digest(plan())
    assert digest(plan(interleave=Interleave.SLICES)) != digest(plan())
    assert digest(plan(reset=Reset.RESTART)) != digest(plan())


def test_the_text_of_scripts_counts_and_their_names_do_not():
    def mine(file, text):
        return plan((replace(READ, workload="mine", scripts=(Script(file=file, text=text),)),))

    assert digest(mine("a.sql", "SELECT 1;")) == digest(mine("b.sql", "SELECT 1;"))
    assert digest(mine("a.sql", "SELECT 1;")) != digest(mine("a.sql", "SELECT 2;"))


def test_wording_neighbours_and_other_environments_do_not_count():
    mine = digest(plan())
    assert digest(plan(question="!", blocks=24, seed=9, budget=60.0)) == mine
    assert digest(plan(base=replace(BASE, name="z"))) == mine
    assert digest(plan((READ, WRITE)), READ.identity) == mine
    assert digest(plan((replace(READ, label="-x"),))) == mine


def test_settings_of_writing_count_where_something_is_written():
    changed = replace(BASE, settings={**BASE.settings, "max_wal_size": "8GB", "synchronous_commit": "off"})
    assert digest(plan(base=changed)) == digest(plan())
    assert digest(plan((WRITE,), base=changed)) != digest(plan((WRITE,)))


def test_more_connections_do_not_count():
    changed = replace(BASE, settings={**BASE.settings, "max_connections": "500"})
    assert digest(plan(base=changed)) == digest(plan())


def test_all_cells_together_have_a_floor_of_their_own():
    both = plan((READ, WRITE))
    assert digest(both, ALL_CELLS) == digest(plan((WRITE, READ)), ALL_CELLS)
    assert digest(both, ALL_CELLS) != digest(plan((READ, replace(WRITE, clients=8))), ALL_CELLS)
    assert digest(both, ALL_CELLS) not in {digest(both, READ.identity), digest(both, WRITE.identity)}
    assert floor_key(both, ALL_CELLS, "tps", WORKLOADS).design == "runs of 10 s, sessions paired"


# -------------------------------------------------------------------------------------------------- floors

KEY = FloorKey(cell="c", metric="tps", design="runs of 10 s", conditions={})
DIFFERENCES = tuple((-1) ** place * 0.001 * place for place in range(1, 14))


def record(differences=DIFFERENCES, days=1.0, host=HERE, study="s"):
    return FloorRecord(
        key=KEY,
        host=host,
        measured=(NOW - timedelta(days=days)).isoformat(),
        differences=tuple(differences),
        study=study,
        source=study,
        version="0",
    )


def test_nothing_that_was_measured_makes_no_floor():
    assert make_floor(KEY, [], HERE, NOW) is None


def test_a_fresh_measurement_on_this_host_is_relied_upon():
    floor = make_floor(KEY, [record()], HERE, NOW)
    assert floor.valid
    assert floor.s0 == pytest.approx(1.4826 * 0.007)
    assert (floor.differences, floor.cell, floor.metric, floor.design) == (13, "c", "tps", "runs of 10 s")
    assert (floor.measured, floor.source) == ((NOW - timedelta(days=1)).isoformat(), "study s")


@pytest.mark.parametrize(
    ("made", "doubt"),
    [
        (record(DIFFERENCES[:11]), "rests on 11 differences, and at least 12 are needed"),
        (record(DIFFERENCES[:1]), "rests on 1 difference, and at least 12 are needed"),
        (record([0.0] * 8 + [0.1] * 5), "it is zero"),
        (record([0.01] * 10 + [0.3] * 3), "3 of its 13 differences are outliers"),
        (record(days=31), "2026-01-29, more than 30 days ago"),
        (record(days=-2), "2026-03-03, which is in the future: check the clock"),
        (record(host=Fingerprint(facts={**HERE.facts, "kernel": "6.2"})), "under other conditions: kernel changed"),
        (record(host=Fingerprint(facts={**HERE.facts, "governor": "performance"})), "governor changed"),
        (record(host=Fingerprint(facts={**HERE.facts, "machine": "n", "cpu": "y"})), "it is another machine"),
        (record(host=Fingerprint(facts={"machine": "m", **dict.fromkeys("abcde", "1")})), "a, b, c and 4 more changed"),
    ],
)
def test_what_cannot_be_relied_upon_says_why(made, doubt):
    floor = make_floor(KEY, [made], HERE, NOW)
    assert not floor.valid
    assert doubt in say_reason(floor.doubt)


def test_measurements_of_the_last_30_days_are_pooled_and_it_is_said():
    floor = make_floor(KEY, [record(days=2, study="old"), record(days=1, study="new"), record(days=40)], HERE, NOW)
    assert floor.differences == 26
    assert (floor.source, floor.pooled) == ("study new", 1)
    assert floor.measured == (NOW - timedelta(days=1)).isoformat()


def test_a_few_differences_each_of_many_studies_make_a_floor_together():
    few = [record([0.01 * (1 + day % 3), -0.01], days=1 + day, study=str(day)) for day in range(6)]
    floor = make_floor(KEY, few, HERE, NOW)
    assert floor.valid
    assert floor.differences == 12
    assert floor.s0 == pytest.approx(1.4826 * 0.01)
    assert make_floor(KEY, few[1:], HERE, NOW).doubt == Reason(code="floor_few", value=10, of=12)


def test_a_single_difference_that_is_new_and_large_does_not_make_the_floor_alone():
    floor = make_floor(KEY, [record([0.01] * 13, days=3, study="old"), record([0.05], study="new")], HERE, NOW)
    assert floor.s0 == pytest.approx(1.4826 * 0.01)
    assert floor.differences == 14


def test_a_host_that_has_become_noisier_is_told_from_its_newest_twelve_differences():
    quiet = [record([0.001] * 13, days=20 + day, study=str(day)) for day in range(5)]
    loud = [record([0.05, -0.05], days=1 + day, study=f"new {day}") for day in range(6)]
    assert make_floor(KEY, [*quiet, *loud], HERE, NOW).s0 == pytest.approx(1.4826 * 0.05)
    assert make_floor(KEY, [*quiet, *loud[:5]], HERE, NOW).s0 == pytest.approx(1.4826 * 0.001)


def test_a_host_that_has_become_noisier_does_not_hide_behind_quieter_weeks():
    quiet = [record([0.001] * 13, days=5 + day, study=str(day)) for day in range(5)]
    assert make_floor(KEY, [*quiet, record([0.05] * 13)], HERE, NOW).s0 == pytest.approx(1.4826 * 0.05)
    loud = [record([0.05] * 13, days=5 + day, study=str(day)) for day in range(5)]
    assert make_floor(KEY, [*loud, record([0.001] * 13)], HERE, NOW).s0 == pytest.approx(1.4826 * 0.05)


def test_a_stale_measurement_from_here_is_told_rather_than_a_fresh_one_from_elsewhere():
    elsewhere = Fingerprint(facts={"machine": "n"})
    floor = make_floor(KEY, [record(days=40), record(host=elsewhere)], HERE, NOW)
    assert floor.doubt.code == "floor_old"


def test_a_doubtful_measurement_beside_a_good_one_is_left_out():
    noisy = record([0.5] * 13, days=2, host=Fingerprint(facts={"machine": "n"}))
    floor = make_floor(KEY, [noisy, record()], HERE, NOW)
    assert floor.valid
    assert floor.differences == 13


@given(st.lists(st.lists(st.floats(-1, 1), min_size=12, max_size=24), min_size=1, max_size=5), st.randoms())
def test_a_floor_is_never_smaller_than_what_was_pooled_and_does_not_depend_on_the_order(samples, shuffler):
    records = [record(sample, days=place + 1, study=str(place)) for place, sample in enumerate(samples)]
    floor = make_floor(KEY, records, HERE, NOW)
    shuffler.shuffle(records)
    assert make_floor(KEY, records, HERE, NOW) == floor
    assert floor.s0 >= noise_floor([value for sample in samples for value in sample])
    assert floor.valid == (floor.s0 > 0 and floor.doubt is None)


@pytest.mark.parametrize("change", [{"s0": 0.0}, {"differences": 11}, {"doubt": "old"}])
def test_a_floor_of_zero_or_of_few_differences_is_never_valid(change):
    floor = Floor(s0=0.01, differences=12, cell="c", metric="tps", design="", host="", measured="")
    assert floor.valid
    assert not replace(floor, **change).valid


def test_data_of_ones_own_are_a_condition_and_have_no_scale():
    made = plan()
    own = replace(made.experiment.cells[0], data=OwnData(command=("./fill",)))
    designs = (replace(made.designs[0], cell=own.identity),)
    made = replace(made, experiment=replace(made.experiment, cells=(own,)), designs=designs)
    conditions = floor_key(made, own.identity, "tps", WORKLOADS).conditions
    assert "scale" not in conditions
    assert conditions["data"] == own.data.digest[:12]
