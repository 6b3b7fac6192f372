import pytest

from pgstrata.workloads import builtin_workloads
from pgstrata.workloads.data import marker_sql, warm_sql

WORKLOADS = builtin_workloads()
OF_PGBENCH = ("select-only", "simple-update", "tpcb-like", "connect", "custom")
OF_SYSBENCH = ("oltp-point-select", "oltp-read-only", "oltp-read-write", "oltp-update-index")


def test_there_are_four_workloads_of_each_driver_and_one_for_scripts():
    assert WORKLOADS.keys() == {*OF_PGBENCH, *OF_SYSBENCH}
    assert {name for name, workload in WORKLOADS.items() if workload.driver == "sysbench"} == {*OF_SYSBENCH}


@pytest.mark.parametrize("name", OF_SYSBENCH)
def test_a_workload_of_sysbench_has_its_script_and_says_how_keys_are_drawn(name):
    workload = WORKLOADS[name]
    assert workload.builtin == name.replace("-", "_")
    assert workload.data == "sbtest"
    assert workload.options == {"access": "uniform"}
    assert workload.choices == {"access": ("uniform", "gaussian", "special", "pareto")}
    # what such tables had on disk; all that there are is warmed
    assert 26e6 < workload.bytes_per_scale < 27e6
    assert "ARRAY[]::text[]" in warm_sql(workload)


@pytest.mark.parametrize("name", OF_PGBENCH)
def test_a_workload_is_known_by_the_name_of_its_folder_and_works_on_the_tables_of_pgbench(name):
    workload = WORKLOADS[name]
    assert workload.name == name
    assert workload.data == workload.driver == "pgbench"
    assert workload.title
    assert workload.builtin == ("" if name in {"connect", "custom"} else name)
    assert 14e6 < workload.bytes_per_scale < 17e6
    assert "pgbench_accounts" in workload.relations


def test_reading_and_connecting_never_write():
    reading = [name for name, workload in WORKLOADS.items() if not workload.writes]
    assert reading == ["connect", "oltp-point-select", "oltp-read-only", "select-only"]


def test_only_connect_has_a_connection_for_each_transaction():
    assert [name for name, workload in WORKLOADS.items() if workload.reconnects] == ["connect"]
    assert WORKLOADS["connect"].script.text == "SELECT 1;\n"


def test_only_tpcb_like_updates_one_of_scale_rows_in_every_transaction():
    assert [name for name, workload in WORKLOADS.items() if workload.hot_row_per_scale] == ["tpcb-like"]


def test_warming_names_the_relations_of_the_workload_and_leaves_no_gap():
    script = warm_sql(WORKLOADS["select-only"])
    assert "ARRAY['pgbench_accounts', 'pgbench_accounts_pkey'," in script
    assert "@" not in script


def test_the_marker_is_a_table_of_a_fixed_name():
    assert "CREATE TABLE pgstrata_marker (" in marker_sql()
