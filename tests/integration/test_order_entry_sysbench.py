"""Order entry under sysbench on a real server: the same effects as under pgbench, and a user's checkout as it is."""

import os
import shutil
import subprocess
from functools import partial
from pathlib import Path

import pytest

from databases import ask, database_of, drive, wrong
from pgstrata.drivers.sysbench.driver import SysbenchDriver
from pgstrata.hosts.local import LocalHost
from pgstrata.model.experiment import Cell, Protocol
from pgstrata.model.secret import Secret
from pgstrata.model.server import Address
from pgstrata.ports.driver import Load
from pgstrata.store.load import load_study
from pgstrata.workloads import builtin_workloads

pytestmark = [
    pytest.mark.server,
    pytest.mark.timeout(600),
    pytest.mark.skipif(shutil.which("sysbench") is None, reason="sysbench is not installed here"),
]

WORKLOAD = builtin_workloads()["tpcc"]
DATA = WORKLOAD.data
CLIENTS, EACH = 3, 200
MIX = {"new-order": 0.45, "payment": 0.43, "order-status": 0.04, "delivery": 0.04, "stock-level": 0.04}
COUNTS = """
SELECT count(*) FROM orders;
SELECT count(*) FROM history;
SELECT count(*) FROM orders WHERE o_carrier_id IS NOT NULL;
SELECT sum(w_ytd) FROM warehouse;
"""


@pytest.fixture(scope="module")
def orders(running_server):
    with database_of(running_server, DATA) as name:
        yield partial(ask, running_server, name)


def counts(orders):
    return [float(row[0]) for row in orders(COUNTS)]


def run_sysbench(server, database, folder, **changes):
    """What sysbench reports of a fixed number of transactions, EACH of every client."""
    cell = Cell(
        **{"workload": "tpcc", "scale": 1, "clients": CLIENTS, "threads": CLIENTS, "driver": "sysbench", **changes}
    )
    address = Address(
        host=str(server["folder"]),
        port=server["port"],
        user="boss",
        database=database,
        password=Secret("canary-pw-7391"),
    )
    load = Load(cell=cell, workload=WORKLOAD, address=address, seconds=0, seed=7, transactions=EACH)
    driver = SysbenchDriver(LocalHost())
    driver.start(load, str(folder)).wait(timeout=120)
    return driver.parse(driver.collect(str(folder)))


@pytest.mark.parametrize("access", ["standard", "uniform", "pareto"])
@pytest.mark.parametrize("protocol", [Protocol.PREPARED, Protocol.SIMPLE])
def test_every_transaction_does_what_it_is_counted_as(running_server, orders, tmp_path, access, protocol):
    before = counts(orders)
    result = run_sysbench(running_server, orders.args[1], tmp_path, options={"access": access}, protocol=protocol)
    assert result.complete, result.errors
    assert result.transactions == CLIENTS * EACH
    made = result.by_script
    assert sum(made.values()) == CLIENTS * EACH
    for name, share in MIX.items():
        # four standard deviations of a binomial count
        assert abs(made[name] - CLIENTS * EACH * share) < 4 * (CLIENTS * EACH * share * (1 - share)) ** 0.5, name
    ordered, paid, delivered, taken = (after - former for after, former in zip(counts(orders), before, strict=True))
    # one in a hundred is rolled back
    assert made["new-order"] - 15 <= ordered <= made["new-order"]
    assert paid == made["payment"]
    # of ten districts each, one that another delivery has just taken is skipped
    assert 0.8 * 10 * made["delivery"] <= delivered <= 10 * made["delivery"]
    assert 2000 * made["payment"] < taken < 3000 * made["payment"]
    assert wrong(running_server, orders.args[1], DATA.consistency_at(1)) == []


def test_pgbench_and_sysbench_have_the_same_effects_for_each_transaction(running_server, orders, tmp_path):
    """Of equal mixes: lines and quantities of orders, customers found by name, amounts of payments."""
    asked = """
    SELECT avg(o_ol_cnt) FROM orders WHERE o_id > {last};
    SELECT avg(ol_quantity) FROM order_line WHERE ol_o_id > {last};
    SELECT avg(ol_amount) / 1000 FROM order_line WHERE ol_o_id > {last};
    SELECT avg(h_amount) / 1000 FROM history WHERE h_date > now() - interval '10 minutes';
    SELECT count(*) FROM order_line WHERE ol_o_id > {last} AND ol_dist_info IS NULL;
    SELECT avg(o_all_local) FROM orders WHERE o_id > {last};
    """
    found = []
    for name in ("pgbench", "sysbench"):
        ((last,),) = orders("UPDATE history SET h_date = '2024-01-01'; SELECT max(o_id) FROM orders")
        folder = tmp_path / name
        folder.mkdir()
        if name == "pgbench":
            scripts = WORKLOAD.scripts_for({})
            drive(running_server, orders.args[1], folder, scripts, clients=CLIENTS, transactions=2 * EACH)
        else:
            for part in ("a", "b"):
                (folder / part).mkdir()
                assert run_sysbench(running_server, orders.args[1], folder / part).complete
        found.append([float(row[0]) for row in orders(asked.format(last=last))])
    assert found[0] == pytest.approx(found[1], rel=0.12)
    assert wrong(running_server, orders.args[1], DATA.consistency_at(1)) == []


def test_a_duplicate_key_ends_the_load_instead_of_being_tried_for_ever(running_server, orders, tmp_path):
    ((next_one,),) = orders("SELECT d_next_o_id FROM district WHERE d_id = 1")
    orders("UPDATE district SET d_next_o_id = 1")
    try:
        result = run_sysbench(running_server, orders.args[1], tmp_path)
    finally:
        orders("UPDATE district SET d_next_o_id = (SELECT max(o_id) + 1 FROM orders WHERE o_d_id = d_id)")
    assert int(next_one) > 1
    assert not result.complete
    assert any("duplicate key" in line for line in result.errors)


BOTH = """
question = "What do both drivers reach?"
blocks = 1
[[environments]]
name = "one"
server = "embedded"
[[environments]]
name = "other"
server = "embedded"
settings.random_page_cost = 1.2
[[cells]]
workload = "tpcc"
scale = 1
clients = 2
run = "2s"
warmup = "1s"
[[cells]]
workload = "tpcc"
driver = "sysbench"
scale = 1
clients = 2
run = "2s"
warmup = "1s"
"""


def test_both_drivers_run_in_one_study_on_the_same_data(sandbox):
    done = sandbox.pgstrata("run", sandbox.file(BOTH), "--study", "study-both")
    assert done.returncode == 0, done.stdout + done.stderr
    study = load_study(sandbox.root / "study-both")
    assert {run.cell.rpartition("-")[2] for run in study.runs} == {"pgbench", "sysbench"}
    assert len(study.runs) == 4
    for run in study.runs:
        assert str(run.validity) != "invalid", run.reasons
        assert run.value("tps") > 0
        # 45 in a hundred are new orders
        assert run.value("new_orders") == pytest.approx(60 * 0.45 * run.value("tps"), rel=0.3)
    assert len(list((sandbox.root / "data").glob("**/datasets/tpcc-s1*/pgstrata.marker"))) <= 2
    records = sandbox.records(sandbox.root / "study-both")
    for record in records.values():
        assert len(record["facts"]["driver.sysbench.lua_sha256"]) == 64
    assert sandbox.pgstrata("reparse", "study-both").returncode == 0


# What sysbench-tpcc does on the command line, in little: its options, its commands, its tables, some of its statements.
COMMON = """
ffi = require("ffi")
ffi.cdef("void sb_counter_inc(int, sb_counter_type);")
if sysbench.cmdline.command == nil then error("Command is required") end
sysbench.cmdline.options = {
   scale = {"warehouses", 100},
   tables = {"sets", 1},
   use_fk = {"keys", 1},
}
function connect()
   drv = sysbench.sql.driver()
   con = drv:connect()
   if drv:name() == "pgsql" then con:query("SET search_path TO public") end
end
local function each(text)
   for number = 1, sysbench.opt.tables do con:query((text:gsub("#", number):gsub("@", sysbench.opt.scale))) end
end
function cmd_prepare()
   connect()
   each("CREATE TABLE warehouse# AS SELECT w::smallint AS w_id, 300000.00 AS w_ytd FROM generate_series(1, @) w")
   each("CREATE TABLE district# AS SELECT w::smallint AS d_w_id, d::smallint AS d_id, 30000.00 AS d_ytd, 3001 AS d_next_o_id FROM generate_series(1, @) w, generate_series(1, 10) d")
   each("CREATE TABLE customer# AS SELECT generate_series(1, @ * 30000) AS c_id")
   each("CREATE TABLE history# AS SELECT generate_series(1, @ * 30000) AS h_c_id")
   each("CREATE TABLE item# AS SELECT generate_series(1, 100000) AS i_id")
   each("CREATE TABLE stock# AS SELECT generate_series(1, @ * 100000) AS s_i_id")
   each("CREATE TABLE orders# AS SELECT w AS o_w_id, d AS o_d_id, o AS o_id, 1 AS o_ol_cnt FROM generate_series(1, @) w, generate_series(1, 10) d, generate_series(1, 3000) o")
   each("CREATE TABLE new_orders# AS SELECT o_w_id AS no_w_id, o_d_id AS no_d_id, o_id AS no_o_id FROM orders# WHERE o_id > 2100")
   each("CREATE TABLE order_line# AS SELECT o_w_id AS ol_w_id, o_d_id AS ol_d_id, o_id AS ol_o_id FROM orders#")
end
sysbench.cmdline.commands = {prepare = {cmd_prepare, sysbench.cmdline.PARALLEL_COMMAND}}
"""
RUN = """
function thread_init() connect() end
local number = 0
function event()
   number = number + 1
   _G[number % 4 == 0 and "new_order" or "payment"]()
end
local function pay()
   local set = sysbench.rand.uniform(1, sysbench.opt.tables)
   con:query("BEGIN")
   con:query(string.format("UPDATE warehouse%d SET w_ytd = w_ytd + 7 WHERE w_id = 1", set))
   con:query(string.format("UPDATE district%d SET d_ytd = d_ytd + {paid} WHERE d_w_id = 1 AND d_id = 3", set))
   con:query("COMMIT")
end
function new_order()
   ffi.C.sb_counter_inc(sysbench.tid, ffi.C.SB_CNT_ERROR)
   pay()
end
function payment() pay() end
function thread_done() con:disconnect() end
"""
CHECKOUT = """
question = "?"
blocks = 1
[[environments]]
name = "one"
server = "embedded"
[[environments]]
name = "other"
server = "embedded"
settings.random_page_cost = 1.2
[[cells]]
workload = "sysbench-tpcc"
checkout = "mine"
options.tables = 2
scale = 1
clients = 2
run = "2s"
warmup = "0s"
"""


def make_checkout(sandbox, paid):
    folder = sandbox.root / "mine"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "tpcc.lua").write_text('#!/usr/bin/env sysbench\nrequire("tpcc_common")\nrequire("tpcc_run")\n')
    (folder / "tpcc_common.lua").write_text(COMMON)
    (folder / "tpcc_run.lua").write_text(RUN.replace("{paid}", paid))


def test_a_checkout_makes_its_data_once_and_runs_on_clones_of_them(sandbox):
    make_checkout(sandbox, "7")
    done = sandbox.pgstrata("run", sandbox.file(CHECKOUT), "--study", "study-checkout")
    assert done.returncode == 0, done.stdout + done.stderr
    study = load_study(sandbox.root / "study-checkout")
    assert len(study.runs) == 2
    for run in study.runs:
        assert str(run.validity) != "invalid", run.reasons
        assert run.value("tps") > 0
        # each fourth, and sysbench counts an ignored error with it, as with those that are rolled back on purpose
        assert run.value("new_orders") == pytest.approx(15 * run.value("tps"), rel=0.05)
        assert run.value("retried") <= run.value("transactions") / 8
    (record, _) = sandbox.records(sandbox.root / "study-checkout").values()
    assert {key for key in record["facts"] if key.startswith("checkout.")} == {
        "checkout.tpcc.lua.sha256", "checkout.tpcc_common.lua.sha256", "checkout.tpcc_run.lua.sha256",
    }  # fmt: skip
    assert "no audited TPC result" in sandbox.pgstrata("show", "study-checkout").stdout


def test_a_checkout_that_breaks_a_condition_has_invalid_runs(sandbox):
    make_checkout(sandbox, "8")
    sandbox.pgstrata("run", sandbox.file(CHECKOUT), "--study", "study-broken")
    for run in load_study(sandbox.root / "study-broken").runs:
        assert str(run.validity) == "invalid"
        (reason,) = (each for each in run.reasons if each.code == "inconsistent_data")
        assert all(name.startswith("condition 1") for name in reason.names)
        assert {name.rpartition("(")[2] for name in reason.names} <= {"tables 1)", "tables 2)"}


def test_a_checkout_that_fails_to_prepare_is_told_with_what_sysbench_said(sandbox):
    make_checkout(sandbox, "7")
    common = sandbox.root / "mine" / "tpcc_common.lua"
    common.write_text(common.read_text().replace("300000.00 AS w_ytd", "no_such_column AS w_ytd"))
    done = sandbox.pgstrata("run", sandbox.file(CHECKOUT), "--study", "study-failed")
    assert done.returncode != 0
    assert "sysbench could not build the dataset" in done.stderr
    assert "no_such_column" in done.stderr
    assert not list((sandbox.root / "data").glob("**/*.partial"))


@pytest.mark.skipif(os.getuid() != 0, reason="only root could run another user's files by mistake")
def test_root_runs_no_files_of_another_user(sandbox):
    make_checkout(sandbox, "7")
    shutil.chown(sandbox.root / "mine" / "tpcc_run.lua", "nobody")
    done = sandbox.pgstrata("plan", sandbox.file(CHECKOUT))
    assert done.returncode != 0
    assert "tpcc_run.lua" in done.stderr
    assert "another user may change it" in done.stderr


@pytest.mark.skipif("SYSBENCH_TPCC" not in os.environ, reason="no checkout of sysbench-tpcc is named")
def test_sysbench_tpcc_itself_runs_unmodified(sandbox):
    shutil.copytree(Path(os.environ["SYSBENCH_TPCC"]), sandbox.root / "mine", dirs_exist_ok=True)
    text = CHECKOUT.replace("options.tables = 2\n", "")
    done = sandbox.pgstrata("run", sandbox.file(text), "--study", "study-theirs")
    assert done.returncode == 0, done.stdout + done.stderr
    for run in load_study(sandbox.root / "study-theirs").runs:
        assert str(run.validity) != "invalid", run.reasons
        assert run.value("tps") > 0
        assert run.value("new_orders") == pytest.approx(60 * 10 / 23 * run.value("tps"), rel=0.3)
    assert subprocess.run(["git", "-C", os.environ["SYSBENCH_TPCC"], "diff", "--quiet"], check=False).returncode == 0
