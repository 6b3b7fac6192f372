from __future__ import annotations

import tomllib

import pytest

from pgstrata.errors import UsageError
from pgstrata.experiment.compose import Wishes, compose_try, fitting_run
from pgstrata.model.secret import Secret


def test_versions_become_a_file_that_can_be_parsed(parse):
    composed = compose_try(["server=16,18"], Wishes(workloads=("simple-update", "select-only"), budget="10m", seed=4))
    experiment = parse(composed.text)
    assert [environment.name for environment in experiment.environments] == ["pg16", "pg18"]
    assert [cell.workload for cell in experiment.cells] == ["simple-update", "select-only"]
    assert (experiment.budget, experiment.seed, experiment.blocks) == (600.0, 4, 60)


def test_whatever_is_no_factor_is_a_setting(parse):
    experiment = parse(compose_try(["shared_buffers=1GB,4GB", "pg_stat_statements.max=100,200"]).text)
    assert experiment.factors == ("settings.shared_buffers", "settings.pg_stat_statements.max")


def test_everything_said_is_in_the_file():
    composed = compose_try(
        ["checksums=true,false"],
        Wishes(workloads=("tpcb-like",), scale=50, clients=8, run="7s", blocks=9, threshold="2 %", controls=("same",)),
    )
    document = tomllib.loads(composed.text)
    assert document["factors"] == {"checksums": [True, False]}
    assert document["cells"] == [{"workload": "tpcb-like", "scale": 50, "clients": 8, "run": "7s"}]
    assert (document["blocks"], document["threshold"], document["controls"]) == (9, "2 %", ["same"])
    assert "budget" not in document
    assert composed.remarks == ()


def test_paths_are_resolved_by_the_caller():
    composed = compose_try(["server=./a/install,prefix:b/install,18"], resolve_path=lambda path: f"/abs/{path}")
    assert tomllib.loads(composed.text)["factors"]["server"] == [
        "prefix:/abs/./a/install",
        "prefix:/abs/b/install",
        "18",
    ]


def test_a_comma_inside_of_a_level_is_escaped():
    composed = compose_try([r"shared_preload_libraries=a\,b,c"])
    assert tomllib.loads(composed.text)["factors"] == {"settings.shared_preload_libraries": ["a,b", "c"]}


def test_a_key_may_be_given_more_than_once():
    composed = compose_try(["server=16", "server=18"])
    assert tomllib.loads(composed.text)["factors"] == {"server": ["16", "18"]}


def test_passwords_are_not_written_and_come_back(parse):
    composed = compose_try(["server=dsn:host=a password=hunter2,postgresql://me:hunter3@b/db,dsn:c"])
    assert "hunter" not in composed.text + repr(composed)
    experiment = parse(composed.text, conninfo=composed.conninfo)
    assert [environment.server.conninfo for environment in experiment.environments] == [
        Secret("host=a password=hunter2"),
        Secret("postgresql://me:hunter3@b/db"),
        Secret("service=c"),
    ]


@pytest.mark.parametrize(
    ("assignment", "remedy"),
    [
        ("sever=16,18", "server"),
        ("conection=tcp,socket", "connection"),
        ("setings.jit=on,off", "settings.jit"),
        ("clients=1,2", "--clients"),
        ("server", "KEY=LEVEL"),
        ("=16", "KEY=LEVEL"),
        ("server=16,", "LEVEL"),
        ("Not A Name=1,2", "factors are"),
    ],
)
def test_assignments_that_cannot_be_meant_name_a_remedy(assignment, remedy):
    with pytest.raises(UsageError) as caught:
        compose_try([assignment])
    assert remedy in caught.value.remedy


@pytest.mark.parametrize("key", ["log_connections", "max_connections", "work_mem", "jit", "huge_pages", "fsync"])
def test_settings_are_not_taken_for_misspelt_factors(key):
    assert f"settings.{key}" in tomllib.loads(compose_try([f"{key}=1,2"]).text)["factors"]


def test_nothing_to_vary_is_refused():
    with pytest.raises(UsageError, match="nothing varies"):
        compose_try([])


def test_a_bad_budget_is_refused():
    with pytest.raises(UsageError, match="duration"):
        compose_try(["server=16,18"], Wishes(budget="soon"))


def test_the_length_of_a_run_follows_from_the_budget():
    assert fitting_run(600, environments=2, cells=1, servers=2) == 17
    assert fitting_run(360, environments=2, cells=1, servers=2) == 17  # 12 blocks would give 8 s, so 7 are aimed at
    assert fitting_run(30, environments=5, cells=2, servers=5) == 5
    assert fitting_run(86400, environments=2, cells=1, servers=2) == 60
