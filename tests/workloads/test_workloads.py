import re
from importlib.resources import files

import pytest

from pgstrata.workloads import builtin_workloads
from pgstrata.workloads.data import marker_sql, warm_sql

WORKLOADS = builtin_workloads()
ON_PGBENCH = {"select-only", "simple-update", "tpcb-like", "connect", "custom"}


OF_SYSBENCH = {"oltp-point-select", "oltp-read-only", "oltp-read-write", "oltp-update-index"}


def test_workloads_share_the_data_of_their_kind():
    kinds = {}
    for name, workload in WORKLOADS.items():
        kinds.setdefault(workload.data.name, set()).add(name)
    assert kinds == {
        "pgbench": ON_PGBENCH,
        "sbtest": OF_SYSBENCH,
        "sbtpcc": {"sysbench-tpcc"},
        "tpcc": {"tpcc"},
        "sales": {"heavyweight", "star-join"},
        "articles": {"full-text"},
        "events": {"insert-heavy"},
        "trade": {"analytic"},
    }


def test_sysbench_drives_its_own_scripts_and_pgbench_all_else():
    of_sysbench = {name for name, workload in WORKLOADS.items() if workload.driver == "sysbench"}
    assert of_sysbench == {*OF_SYSBENCH, "sysbench-tpcc"}
    assert {workload.driver for workload in WORKLOADS.values()} == {"pgbench", "sysbench"}


def test_order_entry_alone_is_run_by_both_drivers():
    both = {name for name, workload in WORKLOADS.items() if len(workload.drivers) > 1}
    assert both == {"tpcc"}
    assert WORKLOADS["tpcc"].drivers == ("pgbench", "sysbench")


def test_sysbench_runs_order_entry_by_one_script_and_only_by_statements_of_the_client():
    workload = WORKLOADS["tpcc"]
    (script,) = workload.scripts_for({}, "sysbench")
    assert script.file == "tpcc/sysbench/tpcc.lua"
    assert workload.scripts_for({"statements": "server"}, "sysbench") == ()
    assert workload.scripts_for({"terminals": "standard"}, "sysbench") == ()
    assert workload.fixed_options("sysbench") == {"statements": {"client"}, "terminals": {"busy"}}


def test_the_lua_of_order_entry_has_the_statements_of_the_scripts_of_pgbench():
    folder = files("pgstrata.workloads") / "tpcc"
    theirs = {
        re.sub(r"@n@|@d@", "?", re.sub(r"(?<!:):[a-z]+(@n@)?", "?", line.removesuffix("\\gset").strip(" ;")))
        for file in (folder / "client").iterdir()
        for line in file.read_text("utf-8").splitlines()
        if line and not line.startswith(("\\", "--", "@"))
    }
    found = re.findall(r'= \{"(.+?)", "([it]*)"\}', (folder / "sysbench" / "tpcc.lua").read_text("utf-8"))
    as_text = re.compile(r"\((\w+ - 1)\)::text|::text")
    assert {as_text.sub(lambda cast: cast[1] or "", text).replace("?::int", "?") for text, _ in found} == {
        text.replace("?::int", "?") for text in theirs
    }
    assert [text for text, types in found if text.count("?") != len(types)] == []


def test_an_option_is_fixed_only_where_all_scripts_of_a_driver_need_it():
    assert WORKLOADS["select-only"].fixed_options("pgbench") == {}
    assert WORKLOADS["tpcc"].fixed_options("pgbench") == {"statements": {"client", "server"}}
    assert WORKLOADS["tpcc"].fixed_options("another") == {}


def test_copies_of_tables_count_in_size_and_in_checks():
    workload = WORKLOADS["sysbench-tpcc"]
    one, two = workload.data_for({}), workload.data_for({"tables": "2"})
    assert two.size(3) == 2 * one.size(3)
    assert one.checks_at(3).count("FROM stock1") == 1
    assert "stock2" not in one.checks_at(3)
    for query in (two.checks_at(3), two.consistency_at(3)):
        assert "warehouse1" in query
        assert "warehouse2" in query
        assert "@" not in query
    assert WORKLOADS["tpcc"].data_for({"access": "pareto"}) is WORKLOADS["tpcc"].data


@pytest.mark.parametrize("name", sorted(OF_SYSBENCH))
def test_a_workload_of_sysbench_has_its_script_and_says_how_keys_are_drawn(name):
    workload = WORKLOADS[name]
    assert workload.builtin == name.replace("-", "_")
    assert tuple(workload.options["access"].choices) == ("uniform", "gaussian", "special", "pareto")
    # what such tables had on disk; all that there are is warmed
    assert 26e6 < workload.data.bytes_per_scale < 27e6
    assert "ARRAY[]::text[]" in warm_sql(workload)


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_workload_is_known_by_the_name_of_its_folder_and_says_what_it_is(name):
    workload = WORKLOADS[name]
    assert workload.name == name
    assert workload.title
    assert workload.data.title
    assert workload.data.unit
    assert all(option.meaning for option in workload.options.values())


def test_the_data_of_pgbench_take_15_mb_for_each_unit_of_scale():
    data = WORKLOADS["select-only"].data
    assert 14e6 < data.bytes_per_scale < 17e6
    assert "pgbench_accounts" in data.relations
    assert data.size(10) == 10 * data.bytes_per_scale


def test_what_all_scales_share_is_counted_once():
    data = WORKLOADS["tpcc"].data
    assert data.size(2) - data.size(1) == data.bytes_per_scale
    assert data.size(1) > data.bytes_per_scale


@pytest.mark.parametrize("name", ["select-only", "simple-update", "tpcb-like"])
def test_pgbench_s_own_script_runs_unless_an_option_asks_for_another_one(name):
    workload = WORKLOADS[name]
    assert workload.builtin == name
    assert workload.scripts_for({}) == ()
    (script,) = workload.scripts_for({"access": "zipfian"})
    assert "\\set aid random_zipfian(1, 100000 * :scale, 1.1)\n" in script.text


@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=str)
def test_nothing_is_left_to_be_filled_in_a_script_whatever_is_chosen(workload):
    for name, option in workload.options.items():
        for value in option.choices or [option.default]:
            for script in workload.scripts_for({name: value}):
                assert not re.search(r"@[a-z0-9]+@", script.text), (name, value, script.file)


def test_a_default_is_one_of_the_choices():
    for workload in WORKLOADS.values():
        for option in workload.options.values():
            assert not option.choices or option.default in option.choices


@pytest.mark.parametrize("statements", ["client", "server"])
def test_order_entry_has_the_standard_mix_wherever_its_statements_come_from(statements):
    scripts = WORKLOADS["tpcc"].scripts_for({"statements": statements})
    weights = {script.file.rpartition("/")[2]: script.weight for script in scripts}
    assert weights == {
        "new-order.sql": 45,
        "payment.sql": 43,
        "order-status.sql": 4,
        "delivery.sql": 4,
        "stock-level.sql": 4,
    }


def test_terminals_key_and_think_only_where_they_are_asked_to():
    def sleeps(**options):
        return sum(script.text.count("\\sleep") for script in WORKLOADS["tpcc"].scripts_for(options))

    assert sleeps() == 0
    assert sleeps(terminals="standard") == 10


def test_what_only_reads_is_known():
    assert {name for name, workload in WORKLOADS.items() if not workload.writes} == {
        "analytic", "connect", "heavyweight", "oltp-point-select", "oltp-read-only", "select-only", "star-join",
    }  # fmt: skip


def test_a_heavyweight_query_is_serial_unless_somebody_asks_for_more():
    assert WORKLOADS["heavyweight"].settings == {"max_parallel_workers_per_gather": "0"}


def test_only_connect_has_a_connection_for_each_transaction():
    assert [name for name, workload in WORKLOADS.items() if workload.reconnects] == ["connect"]
    (script,) = WORKLOADS["connect"].scripts_for({})
    assert script.text == "SELECT 1;\n"


def test_only_tpcb_like_updates_one_of_scale_rows_in_every_transaction():
    assert [name for name, workload in WORKLOADS.items() if workload.hot_row_per_scale] == ["tpcb-like"]


def test_warming_names_the_relations_of_the_workload_and_leaves_no_gap():
    script = warm_sql(WORKLOADS["select-only"])
    assert "ARRAY['pgbench_accounts', 'pgbench_accounts_pkey'," in script
    assert "@" not in script


def test_the_marker_is_a_table_of_a_fixed_name():
    assert "CREATE TABLE pgstrata_marker (" in marker_sql()
