from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import records
from pgstrata.app.data_files import DataFiles
from pgstrata.drivers.registry import driver_capabilities
from pgstrata.errors import PlanRefusedError
from pgstrata.experiment.defaults import complete_experiment
from pgstrata.experiment.parse import parse_experiment
from pgstrata.model.experiment import (
    Cell,
    Environment,
    HostKind,
    HostSpec,
    Interleave,
    Placement,
    Reset,
    Script,
    ServerKind,
    ServerSpec,
)
from pgstrata.model.own_data import DataFile, OwnData
from pgstrata.model.plan import FORMER_HORIZON, Design, HostCapacity
from pgstrata.model.reasons import DATA_EXCEED, Reason
from pgstrata.model.secret import Secret
from pgstrata.model.workload import DataKind, Workload
from pgstrata.plan import auto_warmup, forecast, workload_of
from pgstrata.plan import make_plan as make_plan_for
from pgstrata.plan.design import writes
from pgstrata.plan.identity import identify
from pgstrata.plan.refusals import refuse_room
from pgstrata.report.planning.plan import plan_json, render_plan
from pgstrata.workloads import builtin_workloads

GB = 1024**3
CAPACITY = HostCapacity(memory=32 * GB, cpus=4, free_disk=500 * GB)
EXAMPLES = Path(__file__).parents[2] / "examples"
ALL_EXAMPLES = sorted(
    str(path.relative_to(EXAMPLES).with_suffix(""))
    for path in EXAMPLES.rglob("*.toml")
    # lists of prices measure nothing
    if "[[cells]]" in path.read_text(encoding="utf-8")
)
make_plan = partial(make_plan_for, drivers=driver_capabilities())
WORKLOADS = {
    name: Workload(
        name=name,
        title=name,
        data=DataKind(name="pgbench", title="", unit="", bytes_per_scale=16 * 1024**2),
        writes=name != "select-only",
        builtin="" if name == "custom" else name,
        hot_row_per_scale=name == "tpcb-like",
    )
    for name in ("select-only", "simple-update", "tpcb-like", "custom")
}


def cell(workload="select-only", scale=10, clients=4, **more):
    return Cell(workload=workload, scale=scale, clients=clients, threads=1, **more)


def environment(name, server="16", **more):
    return Environment(name=name, levels=(), server=ServerSpec(kind=ServerKind.CATALOGUE, value=server), **more)


def experiment(**more):
    fields = {
        "blocks": 3,
        "environments": (environment("pg16"), environment("pg18", "18")),
        "cells": (cell(), cell(clients=8)),
    }
    return records.make_experiment(**{**fields, **more})


def plan(**more):
    return make_plan(experiment(**more), WORKLOADS, CAPACITY)


def codes(made):
    """Notes of a plan but those on the size of its data."""
    return [note.code for note in made.notes if note.code != DATA_EXCEED]


experiments = st.builds(
    lambda envs, clients, blocks, seed: experiment(
        environments=tuple(environment(f"e{number}") for number in range(envs)),
        cells=tuple(cell(clients=one) for one in clients),
        blocks=blocks,
        seed=seed,
    ),
    st.integers(1, 5),
    st.lists(st.integers(1, 50), min_size=1, max_size=4, unique=True),
    st.integers(1, 24),
    st.integers(0, 2**63 - 1),
)


@settings(max_examples=40, deadline=None)
@given(experiments, st.sampled_from([Interleave.RUNS, Interleave.SLICES]))
def test_every_environment_meets_every_cell_once_in_every_block(asked, way):
    made = make_plan(asked, WORKLOADS, CAPACITY, interleave=way)
    expected = {(one.name, each.identity) for one in asked.environments for each in asked.cells}
    assert [block.number for block in made.blocks] == list(range(1, asked.blocks + 1))
    for block in made.blocks:
        pairs = Counter((run.environment, run.cell) for run in block.runs)
        assert set(pairs) == expected
        assert set(pairs.values()) == {1}
        assert {resident for visit in block.visits for resident in visit.residents} == {e for e, _ in expected}
        for visit in block.visits:
            assert all({run.environment for run in stage.runs} == set(visit.residents) for stage in visit.stages)
    identities = [run.identity for run in made.runs]
    assert len(set(identities)) == len(identities)
    assert all(run.identity == f"b{run.block:02d}/{run.environment}/{run.cell}" for run in made.runs)


@settings(max_examples=20, deadline=None)
@given(experiments)
def test_the_arms_of_a_block_share_their_seed_and_blocks_do_not(asked):
    made = make_plan(asked, WORKLOADS, CAPACITY)
    seeds: dict[tuple[int, str], set[int]] = {}
    for run in made.runs:
        seeds.setdefault((run.block, run.cell), set()).add(run.seed)
    assert all(len(values) == 1 for values in seeds.values())
    assert len({next(iter(values)) for values in seeds.values()}) == len(seeds)
    assert all(0 <= run.seed < 2**31 for run in made.runs)


@settings(max_examples=20, deadline=None)
@given(experiments)
def test_the_same_experiment_and_seed_give_the_same_plan(asked):
    assert make_plan(asked, WORKLOADS, CAPACITY) == make_plan(asked, WORKLOADS, CAPACITY)


PINNED = [
    "pg18",
    "pg16",
    "pg18",
    "pg16",
    "pg18",
    "pg16",
    "pg16",
    "pg18",
    "pg18",
    "pg16",
    "pg18",
    "pg16",
    "pg16",
    "pg18",
    "pg18",
    "pg16",
]


def test_the_order_is_the_same_on_every_python():
    order = [run.environment for run in plan(cells=(cell(),), blocks=8).runs]
    assert order == PINNED


def test_another_seed_gives_another_order():
    orders = {tuple(run.identity for run in plan(seed=seed, blocks=8).runs) for seed in range(6)}
    assert len(orders) == 6


def test_orders_are_balanced_over_many_blocks():
    first = Counter(
        plan(seed=seed, blocks=24, cells=(cell(),)).blocks[number].runs[0].environment
        for seed in range(20)
        for number in range(24)
    )
    assert 190 < first["pg16"] < 290


def test_later_blocks_do_not_depend_on_how_many_there_are():
    assert plan(blocks=2).blocks == plan(blocks=5).blocks[:2]


def test_in_slices_all_environments_are_up_together():
    made = make_plan(experiment(), WORKLOADS, CAPACITY, interleave=Interleave.SLICES)
    (visit,) = made.blocks[0].visits
    assert visit.residents == ("pg16", "pg18")
    assert [len(stage.runs) for stage in visit.stages] == [2, 2]
    assert made.interleave is Interleave.SLICES


def auto(**more):
    return plan(interleave=Interleave.AUTO, **more)


def test_auto_takes_slices_where_nothing_is_written():
    made = auto(cells=(cell(), cell("simple-update")))
    reading, writing = made.designs
    assert (reading.sliced, writing.sliced) == (True, False)
    assert reading.rounds >= 2
    assert reading.reason == Reason(code="nothing_written")
    assert writing.reason == Reason(code="flushing")
    assert made.interleave is Interleave.AUTO
    together, *alone = sorted(made.blocks[0].visits, key=lambda visit: -len(visit.residents))
    assert {stage.cell for stage in together.stages} == {reading.cell}
    assert {stage.cell for visit in alone for stage in visit.stages} == {writing.cell}


@pytest.mark.parametrize("interleave", [Interleave.AUTO, Interleave.SLICES, Interleave.RUNS])
def test_a_design_says_whether_its_cell_writes(interleave):
    made = plan(interleave=interleave, cells=(cell(), cell("simple-update")))
    assert [design.writes for design in made.designs] == [False, True]
    assert [design.only_reads for design in made.designs] == [True, False]


def test_of_former_plans_only_slices_tell_that_nothing_is_written():
    made = auto(cells=(cell(), cell("simple-update")))
    former = [replace(design, writes=None) for design in made.designs]
    assert [design.only_reads for design in former] == [True, False]
    assert not Design(cell="c", interleave=Interleave.RUNS).only_reads
    assert identify(made.experiment, former) == identify(made.experiment, made.designs)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"reset": Reset.RESTART}, Reason(code="reset", names=("restart",))),
        ({"cells": (cell(rate=100.0),)}, Reason(code="fixed_rate")),
        ({"cells": (cell(profile=True),)}, Reason(code="profile")),
        (
            {"environments": (environment("a", layers={"sysctl.vm.swappiness": "1"}), environment("b"))},
            Reason(code="of_host", names=("sysctl.vm.swappiness",)),
        ),
        (
            {"cells": (cell("mine", scripts=(Script(file="a.sql", text="UPDATE t SET a = 1;"),)),)},
            Reason(code="flushing"),
        ),
        ({"cells": (cell(scale=2000),)}, "memory"),
    ],
)
def test_auto_goes_run_by_run_where_slices_would_not_be_honest(change, reason):
    made = auto(**change)
    assert made.interleave is Interleave.RUNS
    assert all(reason in {design.reason, design.reason.code} for design in made.designs)


def test_a_script_that_only_reads_is_sliced():
    text = "-- do not update\n\\set aid random(1, 10)\nSELECT abalance FROM pgbench_accounts WHERE aid = :aid;"
    assert auto(cells=(cell("mine", scripts=(Script(file="a.sql", text=text),)),)).interleave is Interleave.SLICES


def test_settings_that_move_work_in_time_are_not_sliced_where_something_is_written():
    pair = (environment("a", settings={"commit_delay": "0"}), environment("b", settings={"commit_delay": "100"}))
    assert auto(environments=pair).interleave is Interleave.SLICES
    with pytest.raises(PlanRefusedError, match=r"code='moving', .*'commit_delay'"):
        plan(environments=pair, cells=(cell("simple-update"),), interleave=Interleave.SLICES)


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 2},
        {"threshold": 0.05},
        {"metric": "latency_p99"},
        {"baseline": "pg18"},
        {"cells": (cell(),)},
        {"environments": (environment("pg16", settings={"jit": "on"}), environment("pg18", "18"))},
        {"cells": (cell("custom", scripts=(Script(file="a.sql", text="SELECT 2;"),)),)},
    ],
)
def test_the_identity_follows_the_content(change):
    assert plan(**change).identity != plan().identity


def test_more_blocks_continue_the_same_plan():
    short, longer = plan(blocks=3), plan(blocks=7)
    assert short.identity == longer.identity
    assert longer.blocks[:3] == short.blocks


def test_the_identity_follows_the_text_of_scripts():
    one, two = (plan(cells=(cell("custom", scripts=(Script(file="a.sql", text=text),)),)) for text in ("a", "b"))
    assert one.identity != two.identity


@pytest.mark.parametrize("change", [{"budget": 60.0}, {"notes": ("x",)}, {"text": "# x"}, {"question": "!"}])
def test_the_identity_does_not_follow_budget_wording_or_notes(change):
    assert plan(**change).identity == plan().identity


def test_the_identity_does_not_follow_passwords_or_free_disk():
    def running(password):
        spec = ServerSpec(kind=ServerKind.DSN, value="host=a", conninfo=Secret(password))
        return experiment(environments=(replace(environment("a"), server=spec), environment("b")))

    one = make_plan(running("x"), WORKLOADS, CAPACITY)
    assert one.identity == make_plan(running("y"), WORKLOADS, replace(CAPACITY, free_disk=400 * GB)).identity


@pytest.mark.parametrize(("run", "warmup"), [(5, 1), (30, 3), (60, 6), (3600, 60)])
def test_the_automatic_warmup_is_a_tenth(run, warmup):
    assert auto_warmup(run) == warmup


def test_the_unlogged_stretches_of_the_first_blocks_are_forecast_once():
    def forecast(blocks, **changes):
        return plan(cells=(cell(**changes),), blocks=blocks, interleave=Interleave.SLICES).forecast

    def once(forecast, blocks):
        return forecast.seconds_total - forecast.seconds_building - blocks * forecast.seconds_per_block

    assert [once(forecast(blocks), blocks) for blocks in (3, 6, 20)] == pytest.approx([6.0, 12.0, 12.0])
    # what was asked for is done each time
    asked = forecast(20, warmup=1.0)
    assert once(asked, 20) == pytest.approx(0.0)
    assert asked.seconds_per_block - forecast(20).seconds_per_block == pytest.approx(2.0)


def test_time_and_disk_are_forecast():
    forecast = plan(cells=(cell(run=60.0, warmup=5.0),), blocks=10).forecast
    assert 2 * 67 <= forecast.seconds_per_block < 2 * 69
    assert forecast.seconds_total == pytest.approx(forecast.seconds_building + 10 * forecast.seconds_per_block)
    assert [need.server for need in forecast.datasets] == ["16", "18"]
    assert forecast.disk_bytes > 3 * 10 * 16 * 1024**2


def test_image_files_are_forecast_with_the_time_to_write_them():
    def forecast(**layers):
        names = ("a", "b")
        environments = tuple(
            environment(name, layers=layers, settings={"max_wal_size": wal, "jit": {"a": "on", "b": "off"}[name]})
            for name, wal in zip(names, ("1GB", "16GB"), strict=True)
        )
        return plan(environments=environments, blocks=10, reset=Reset.CLONE).forecast

    usual, image = forecast(), forecast(filesystem="ext4")
    # each of two images holds half as much again as max_wal_size
    assert image.disk_bytes - usual.disk_bytes > 24 * GB
    assert image.seconds_per_block - usual.seconds_per_block > 2 * 24 * 1024 / 250
    sized = forecast(filesystem="ext4", **{"storage.size": str(5 * GB)})
    assert 4 * GB < sized.disk_bytes - usual.disk_bytes < 10 * GB
    device = forecast(filesystem="ext4", **{"storage.device": "/dev/x"})
    assert device.disk_bytes < usual.disk_bytes
    assert device.seconds_per_block == usual.seconds_per_block


def test_images_of_wal_and_installation_are_forecast_and_memory_takes_no_disk():
    def forecast(**storage):
        layers = {f"storage.{name}": level for name, level in storage.items()}
        one = replace(environment("a"), settings={"max_wal_size": "16GB"}, layers=layers)
        return plan(environments=(one,), baseline="a", blocks=10, cells=(cell("simple-update", run=600.0),)).forecast

    usual, wal, both = forecast(), forecast(wal="loop"), forecast(wal="loop", installation="loop")
    assert 24 * GB < wal.disk_bytes < 35 * GB
    assert wal.seconds_per_block - usual.seconds_per_block > 24 * GB / (200 * 1024**2)
    assert both.disk_bytes - wal.disk_bytes == 512 * 1024**2
    memory = forecast(wal="memory", installation="/dev/x")
    assert memory.disk_bytes < usual.disk_bytes
    assert memory.seconds_per_block == usual.seconds_per_block


def test_what_all_images_of_wal_must_hold_is_computed_once(monkeypatch):
    calls = []
    monkeypatch.setattr(forecast, "wal_apart_bytes", lambda environments: calls.append(1) or GB)
    some = tuple(environment(f"e{number}", layers={"storage.wal": "loop"}) for number in range(10))
    assert plan(environments=some, cells=tuple(cell(clients=number) for number in range(1, 11))).forecast
    # for the whole plan and for what of it is on this machine
    assert len(calls) == 2


def test_plans_that_are_too_large_are_refused_with_the_number():
    some = tuple(environment(f"e{number}") for number in range(500))
    with pytest.raises(PlanRefusedError, match="a plan of 60,000 runs is too large"):
        plan(environments=some, cells=tuple(cell(clients=number) for number in range(1, 6)), blocks=24)
    script = Script(file="s.sql", text="SELECT 1;\n" * (1 << 19), weight=1)
    with pytest.raises(PlanRefusedError, match=r"with 20 MB(?s:.*)at most 16 MB in all"):
        plan(cells=tuple(cell(clients=number, scripts=(script,)) for number in range(1, 5)))


@pytest.mark.timeout(60)
def test_comments_that_never_end_are_not_sought_to_the_end_again_and_again():
    script = Script(file="s.sql", text="SELECT 1; /* x */ " + "/* " * 500_000, weight=1)
    asked = experiment(cells=(cell(scripts=(script,)),))
    assert not writes(asked.cells[0], WORKLOADS)
    assert writes(replace(asked.cells[0], scripts=(replace(script, text="SELECT '/*'; DELETE FROM t;"),)), WORKLOADS)


def test_environments_that_differ_in_settings_share_a_dataset():
    pair = (environment("a", settings={"jit": "on"}), environment("b", settings={"jit": "off"}))
    assert len(plan(environments=pair).forecast.datasets) == 1
    pair = (environment("a", checksums=True), environment("b", checksums=False))
    assert len(plan(environments=pair).forecast.datasets) == 2


def test_another_setup_script_is_another_dataset():
    pair = (environment("a", options={"setup_sql": "SELECT 1"}), environment("b", options={"setup_sql": "SELECT 2"}))
    assert len(plan(environments=pair).forecast.datasets) == 2


def test_datasets_that_would_be_called_alike_name_their_environments():
    trio = (
        environment("plain", options={"setup_sql": "SELECT 1"}),
        environment("indexed", options={"setup_sql": "SELECT 2"}),
        environment("jit", options={"setup_sql": "SELECT 2"}, settings={"jit": "on"}),
    )
    made = plan(environments=trio)
    first, second = [line for line in render_plan(made).splitlines() if line.startswith("    server 16: ")]
    assert first.endswith(" (plain)")
    assert second.endswith(" (indexed, jit)")
    assert json.loads(plan_json(made))["forecast"]["datasets"][1]["environments"] == ["indexed", "jit"]
    assert " (" not in next(line for line in render_plan(plan()).splitlines() if line.startswith("    server 16: "))


def test_workloads_on_the_same_data_share_a_dataset():
    assert len(plan(cells=(cell(), cell("simple-update"))).forecast.datasets) == 2


def test_long_transactions_are_measured_run_by_run_unless_slices_are_asked_for():
    known = builtin_workloads()
    asked = replace(
        experiment(cells=(cell("heavyweight", scale=1), cell("star-join", scale=1))), interleave=Interleave.AUTO
    )
    heavy, star = make_plan(asked, known, CAPACITY).designs
    assert heavy.reason == Reason(code="long_transactions")
    assert not heavy.sliced
    assert star.sliced
    assert all(each.sliced for each in make_plan(asked, known, CAPACITY, interleave=Interleave.SLICES).designs)


def test_a_plan_whose_blocks_can_give_no_verdict_says_so_first():
    made = plan(blocks=3)
    assert codes(made) == ["few_blocks"]
    shown = render_plan(made)
    assert shown.index("no verdict") < shown.index("Environments\n") < shown.index("Cells\n")
    assert shown.count("no verdict") == 1


def test_a_length_of_runs_that_slices_do_not_use_is_told_first():
    def asking(run):
        asked = replace(experiment(cells=(cell(run=run),), blocks=24), interleave=Interleave.SLICES)
        return make_plan(asked, WORKLOADS, CAPACITY)

    long = asking(900.0)
    assert codes(long) == ["run_unused"]
    assert "run = 15 min has no effect" in " ".join(render_plan(long).split())
    assert codes(asking(30.0)) == []


def test_a_budget_that_is_too_small_keeps_the_blocks_and_says_so():
    made = plan(blocks=24, budget=300.0, baseline="pg16")
    assert len(made.blocks) == 24
    assert [code for code in codes(made) if code != "offer"] == ["budget_blocks", "budget_verdict"]
    assert (made.notes[0].seconds, made.notes[0].of) == (300.0, 24)
    assert codes(plan(blocks=24, budget=1e6)) == []


REFUSED = {
    "hot rows": ({"cells": (cell("tpcb-like", scale=4, clients=8),)}, "scale of at least 8"),
    "growing data": ({"cells": (cell("simple-update"),), "reset": Reset.NONE}, "clone"),
    "connections": (
        {"environments": (environment("a", settings={"max_connections": "10"}), environment("b"))},
        "at least 13",
    ),
    "default connections": ({"cells": (cell(clients=96),)}, "at least 101"),
    "memory": ({"environments": (environment("a", settings={"shared_buffers": "30GB"}), environment("b"))}, "at most"),
    "memory in pages": (
        {"environments": (environment("a", settings={"shared_buffers": "3932160"}), environment("b"))},
        "at most",
    ),
    "disk": ({"cells": (cell(scale=20000),)}, "smaller scale"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_plans_that_would_mislead_or_do_not_fit_are_refused(case):
    change, remedy = REFUSED[case]
    with pytest.raises(PlanRefusedError) as caught:
        plan(**change)
    assert remedy in caught.value.remedy
    assert caught.value.exit_code == 2


def test_all_reasons_are_told_at_once():
    with pytest.raises(PlanRefusedError) as caught:
        plan(cells=(cell("tpcb-like", scale=4, clients=96),))
    assert len(caught.value.details) == 2
    assert "2 reasons" in caught.value.what


@pytest.mark.parametrize(("settings_", "layers"), [({"huge_pages": "on"}, {}), ({}, {"pages": "2MB"})])
def test_servers_that_are_up_together_share_the_memory(settings_, layers):
    settings_ = {"shared_buffers": "15GB", **settings_}
    pair = tuple(environment(name, settings=settings_, layers=layers) for name in ("pg16", "pg18"))
    make_plan(experiment(environments=pair), WORKLOADS, CAPACITY)
    with pytest.raises(PlanRefusedError, match=rf"code='memory', .* value=3[23]\d{{9}}, of={CAPACITY.memory}"):
        make_plan(experiment(environments=pair), WORKLOADS, CAPACITY, interleave=Interleave.SLICES)


def test_reading_needs_no_fresh_data():
    assert plan(reset=Reset.NONE).blocks


def test_scripts_run_on_the_data_of_custom():
    own = cell("mine", scripts=(Script(file="a.sql", text="SELECT 1;"),))
    assert workload_of(own, WORKLOADS) is WORKLOADS["custom"]
    with pytest.raises(PlanRefusedError, match="no workload 'mine'"):
        workload_of(cell("mine"), WORKLOADS)


def test_data_of_ones_own_have_no_scale_and_are_known_by_their_contents():
    sql = DataFile(name="make.sql", path="/x/make.sql", digest="abc", bytes=2 * GB)
    mine = cell("mine", scale=1, scripts=(Script(file="a.sql", text="SELECT 1;"),), data=OwnData(sql=sql))
    made = plan(cells=(mine,))
    assert {need.bytes // GB for need in made.forecast.datasets} == {3}
    assert "data by make.sql" in render_plan(made)
    again = replace(mine, data=OwnData(sql=replace(sql, path="/y/other.sql", name="other.sql", stamp="1"), size=GB))
    assert plan(cells=(again,)).identity == made.identity
    other = replace(mine, data=OwnData(sql=replace(sql, digest="def")))
    assert plan(cells=(other,)).identity != made.identity


@pytest.mark.parametrize(
    ("name", "way"),
    [
        *((name, Interleave.RUNS) for name in ALL_EXAMPLES),
        *((name, Interleave.SLICES) for name in ("versions-14-18", "shared-buffers", "custom-script", "checksums")),
    ],
)
def test_examples_are_planned_and_shown(name, way):
    file = EXAMPLES / f"{name}.toml"
    parsed = parse_experiment(
        file.read_text(encoding="utf-8"),
        file.name,
        read_file=lambda script: (EXAMPLES / script).read_text(encoding="utf-8"),
        look_at=DataFiles(EXAMPLES, Path("none"), sure=True),
        workloads=builtin_workloads(),
        drivers=driver_capabilities(),
        cpus=4,
    )
    machine = replace(CAPACITY, memory=256 * GB)
    made = make_plan(
        complete_experiment(parsed, machine, builtin_workloads()), builtin_workloads(), machine, interleave=way
    )
    text = render_plan(made)
    assert max(len(line) for line in text.splitlines()) <= 100
    assert made.experiment.question in text
    assert made.identity in text
    assert all(run.identity in text for run in made.blocks[0].runs)
    assert "(baseline)" in text
    document = json.loads(plan_json(made))
    assert (document["schema"], document["plan"]) == (1, made.identity)
    assert len(document["blocks"]) == made.experiment.blocks


def test_layers_of_the_host_are_printed_for_each_environment_and_for_all():
    made = plan(
        environments=(
            environment("a", layers={"pages": "4kB", "thp": "never"}),
            environment("b", layers={"pages": "2MB", "thp": "never"}),
        ),
        baseline="a",
    )
    text = render_plan(made)
    assert "checksums=on, pages=2MB" in text
    assert "layers of the host of all of them:\n      thp=never" in text
    assert "is as it was afterwards" in text
    assert json.loads(plan_json(made))["environments"][1]["layers"] == {"pages": "2MB", "thp": "never"}
    assert "layers of the host" not in render_plan(plan())


FAR = HostSpec(kind=HostKind.SSH, destination="db1")


def apart(**more):
    environments = (environment("here", **more), environment("there", host=FAR, **more))
    return experiment(environments=environments, baseline="here", interleave=Interleave.AUTO)


def test_plans_without_a_host_keep_the_identity_that_they_had():
    made = plan()
    free = [replace(design, placement=Placement.FREE) for design in made.designs]
    assert identify(made.experiment, free, FORMER_HORIZON) == "1ce086eda2d6"
    assert plan(environments=(environment("pg16"), environment("pg18", "18", host=FAR))).identity != plan().identity


def there(*cells, **more):
    """Both environments on one other machine."""
    pair = (environment("here", **more), environment("there", "18", **more))
    cells = {"cells": cells} if cells else {}
    return replace(
        experiment(environments=tuple(replace(each, host=FAR) for each in pair), **cells),
        baseline="here",
        interleave=Interleave.AUTO,
    )


def test_servers_on_several_machines_are_measured_run_by_run_and_the_plan_says_what_it_cannot_know():
    made = make_plan(replace(apart(), blocks=24), WORKLOADS, CAPACITY)
    assert {design.interleave for design in made.designs} == {Interleave.RUNS}
    assert all(design.reason == Reason(code="several_machines") for design in made.designs)
    assert made.notes[-1] == Reason(code="room_unknown", names=("ssh:db1",))
    assert codes(made) == ["room_unknown"]
    with pytest.raises(PlanRefusedError, match="cannot be measured in slices"):
        make_plan(apart(), WORKLOADS, CAPACITY, interleave=Interleave.SLICES)


def test_servers_on_one_other_machine_take_turns_where_nothing_is_written():
    made = make_plan(there(cell(), cell("simple-update")), WORKLOADS, CAPACITY)
    assert [design.sliced for design in made.designs] == [True, False]
    with pytest.raises(PlanRefusedError, match="code='written_apart'"):
        make_plan(there(cell("simple-update")), WORKLOADS, CAPACITY, interleave=Interleave.SLICES)


def test_servers_that_are_up_together_must_fit_into_their_own_machine():
    both = there(cell(scale=200), settings={"shared_buffers": "5GB"})
    for memory, sliced in ((8 * GB, False), (64 * GB, True)):
        designs = make_plan(both, WORKLOADS, replace(CAPACITY, memory=GB, elsewhere={FAR: memory})).designs
        assert {design.sliced for design in designs} == {sliced}
    # where nobody asked that machine for its memory, the run does
    made = make_plan(both, WORKLOADS, replace(CAPACITY, memory=GB))
    assert all(design.sliced for design in made.designs)
    small = replace(CAPACITY, memory=8 * GB)
    with pytest.raises(PlanRefusedError, match="code='memory'") as caught:
        refuse_room(both.on_host(FAR), WORKLOADS, small, made.forecast, made.designs, where="ssh:db1", say=str)
    assert caught.value.where == "ssh:db1"
    assert 'interleave = "runs"' in "".join((caught.value.remedy, *caught.value.details))
    refuse_room(both.on_host(FAR), WORKLOADS, CAPACITY, made.forecast, made.designs, where="ssh:db1", say=str)


def test_what_is_on_another_machine_need_not_fit_into_this_one():
    large = {"shared_buffers": "100GB"}
    only = replace(apart(settings=large), environments=(environment("there", host=FAR, settings=large),))
    made = make_plan(replace(only, baseline="there"), WORKLOADS, CAPACITY)
    with pytest.raises(PlanRefusedError, match="of memory") as caught:
        refuse_room(
            made.experiment.on_host(FAR),
            WORKLOADS,
            CAPACITY,
            made.forecast,
            made.designs,
            where="ssh:db1",
            say=str,
        )
    assert caught.value.where == "ssh:db1"
    with pytest.raises(PlanRefusedError, match="of memory"):
        make_plan(apart(settings=large), WORKLOADS, CAPACITY)


def test_the_example_of_an_objective_says_that_a_run_is_a_search():
    text, known = (EXAMPLES / "objective.toml").read_text(), builtin_workloads()
    planned = complete_experiment(
        parse_experiment(text, "objective.toml", read_file=str, workloads=known, cpus=4), CAPACITY, known
    )
    shown = " ".join(render_plan(make_plan(planned, known, CAPACITY)).split())
    assert "highest rate with p99 below 20 ms, searched in 12 steps of 5 s" in shown


def test_order_entry_is_called_no_audited_result_before_anything_is_measured():
    text = (EXAMPLES / "tpcc.toml").read_text()
    planned = complete_experiment(
        parse_experiment(text, "tpcc.toml", read_file=str, workloads=builtin_workloads(), cpus=4),
        CAPACITY,
        builtin_workloads(),
    )
    shown = " ".join(render_plan(make_plan(planned, builtin_workloads(), CAPACITY)).split())
    assert "order entry as in TPC-C, but no audited TPC result" in shown


def test_data_of_ones_own_have_no_scale_in_json():
    own = cell(
        workload="custom", scale=1, data=OwnData(command=("./fill",)), scripts=(Script(file="a.sql", text="SELECT 1;"),)
    )
    document = json.loads(plan_json(plan(cells=(own, cell()))))
    assert [each["scale"] for each in document["cells"]] == [None, 10]
    assert [need["scale"] for need in document["forecast"]["datasets"]] == [None, 10] * 2


@pytest.mark.parametrize(
    ("workload", "scale", "options", "least", "most"),
    [
        ("sysbench-tpcc", 10, {}, 108.8, 125),  # bench/results.json, loading
        ("sysbench-tpcc", 1, {}, 37, 45),
        ("sysbench-tpcc", 10, {"tables": "2"}, 187, 205),
        ("tpcc", 10, {}, 22.5, 35),
    ],
)
def test_building_takes_as_long_as_it_was_measured(workload, scale, options, least, most):
    driver = builtin_workloads()[workload].driver
    large = cell(workload=workload, scale=scale, clients=1, options=options, driver=driver)
    asked = experiment(environments=(environment("a"), environment("b")), cells=(large,))
    made = make_plan(asked, builtin_workloads(), CAPACITY)
    assert least <= made.forecast.seconds_building <= most
