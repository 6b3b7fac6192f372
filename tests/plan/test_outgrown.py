"""From which scale on data are larger than shared_buffers and memory."""

from dataclasses import replace

import records
from pgstrata.model.experiment import Cell, Level
from pgstrata.model.plan import HostCapacity
from pgstrata.model.workload import DataKind, Workload
from pgstrata.plan.outgrown import outgrown_notes
from pgstrata.report.planning.plan import render_plan
from pgstrata.report.sentences.reasons import say_notes, say_outgrown, say_reason
from studies import BASE, OTHER, make_environment, make_plan

MB = 1024**2
GB = 1024 * MB
WORKLOADS = {
    "select-only": Workload(
        name="select-only",
        title="",
        data=DataKind(name="pgbench", title="", unit="", bytes_per_scale=16 * MB),
        writes=False,
        builtin="select-only",
    )
}
CAPACITY = HostCapacity(memory=8 * GB, cpus=2, free_disk=500 * GB)


def notes_of(*environments, scales=(10, 100, 1000), capacity=CAPACITY):
    cells = tuple(Cell(workload="select-only", scale=scale, clients=4, threads=4) for scale in scales)
    experiment = replace(records.make_experiment(environments), cells=cells)
    return [say_reason(note) for note in outgrown_notes(experiment, WORKLOADS, capacity)]


def environment(name, buffers, **layers):
    return make_environment(name, settings={"shared_buffers": buffers}, layers=layers)


def test_data_that_outgrow_buffers_and_memory_are_told_with_the_scale():
    assert notes_of(environment(BASE, "1GB"), environment(OTHER, "1GB")) == [
        "select-only: data exceed shared_buffers (1 GB) from scale 100 on",
        "select-only: data exceed the memory of the server (8 GB) from scale 1000 on",
    ]


def test_environments_with_other_memory_are_named():
    small, large = environment(BASE, "1GB", **{"limits.memory": str(2 * GB)}), environment(OTHER, "4GB")
    assert notes_of(small, large) == [
        "select-only: data exceed 1 GB, the shared_buffers of pg16, from scale 100 on",
        "select-only: data exceed 4 GB, the shared_buffers of pg18, from scale 1000 on",
        "select-only: data exceed 2 GB, the memory of pg16, from scale 1000 on",
        "select-only: data exceed 8 GB, the memory of pg18, from scale 1000 on",
    ]


def test_nothing_is_told_where_all_data_fit():
    assert notes_of(environment(BASE, "1GB"), environment(OTHER, "1GB"), scales=(10,)) == []


def test_many_sizes_of_memory_are_told_a_few_times():
    many = [environment(f"e{place}", f"{place + 1}MB") for place in range(50)]
    assert len(notes_of(*many)) == 12


def test_a_single_scale_is_not_called_the_first_of_several():
    both = (environment(BASE, "1GB"), environment(OTHER, "1GB"))
    assert notes_of(*both, scales=(100,)) == ["select-only: data exceed shared_buffers (1 GB)"]
    apart = (environment(BASE, "1GB", **{"limits.memory": str(2 * GB)}), environment(OTHER, "64GB"))
    assert notes_of(*apart, scales=(1000,)) == [
        "select-only: data exceed 1 GB, the shared_buffers of pg16",
        "select-only: data exceed 2 GB, the memory of pg16",
        "select-only: data exceed 8 GB, the memory of pg18",
    ]


def test_scales_of_other_workloads_do_not_count():
    cells = tuple(Cell(workload=name, scale=scale, clients=4, threads=4) for name, scale in (("a", 100), ("b", 1)))
    experiment = replace(records.make_experiment((environment(BASE, "1GB"),)), cells=cells)
    workloads = {cell.workload: WORKLOADS["select-only"] for cell in cells}
    assert [say_reason(note) for note in outgrown_notes(experiment, workloads, CAPACITY)] == [
        "a: data exceed shared_buffers (1 GB)"
    ]


def test_environments_are_called_as_in_the_table_of_verdicts():
    levels = (Level(factor="server", value="18"), Level(factor="settings.shared_buffers", value="4MB"))
    small = replace(environment(BASE, "4MB"), levels=levels)
    experiment = replace(
        records.make_experiment((small, environment(OTHER, "64GB"))),
        cells=(Cell(workload="select-only", scale=10, clients=4, threads=4),),
    )
    plan = replace(make_plan(), experiment=experiment, notes=outgrown_notes(experiment, WORKLOADS, CAPACITY))
    said = "select-only: data exceed 4 MB, the shared_buffers of 18 (shared_buffers = 4MB)"
    assert say_outgrown(plan) == (said,)
    assert said in say_notes(plan)
    assert said in render_plan(plan).replace("\n    ", " ")
