"""The data and transactions of order entry on a real server: values by clauses, conditions that damage breaks."""

import os
import subprocess
from pathlib import Path

import pytest

from pgstrata.workloads import builtin_workloads

pytestmark = [pytest.mark.server, pytest.mark.timeout(300)]

WORKLOAD = builtin_workloads()["tpcc"]
DATA = WORKLOAD.data
SYLLABLES = ("BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING")


def ask(server, script, database="orders"):
    """Rows of a script, each a tuple of texts."""
    dsn = server["dsn"].replace("dbname=postgres", f"dbname={database}")
    done = subprocess.run(
        [server["psql"], "-X", "-q", "-At", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-d", dsn, "-f", "-"],
        input=script, text=True, capture_output=True, check=False, env={**os.environ, "LC_ALL": "C"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [tuple(line.split("\t")) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def orders(running_server):
    """A database with one warehouse."""
    ask(running_server, "CREATE DATABASE orders", "postgres")
    for step in DATA.steps_at(1):
        for script in step:
            ask(running_server, script)
    ask(running_server, "VACUUM ANALYZE")
    yield running_server
    ask(running_server, "DROP DATABASE orders", "postgres")


def broken(server, change=""):
    """The conditions that do not hold, after a change that is taken back."""
    rows = ask(server, f"BEGIN; {change};{DATA.consistency_at(1)}; ROLLBACK;")
    return [item for item, _, _, ok in rows if ok != "t"]


def test_what_was_made_is_what_the_specification_counts(orders):
    assert all(row[-1] == "t" for row in ask(orders, DATA.checks_at(1)))
    assert broken(orders) == []


def test_a_damaged_row_fails_the_check(orders):
    wrong = ask(orders, f"BEGIN; UPDATE customer SET c_balance = 1 WHERE c_id = 7 AND c_d_id = 3; {DATA.checks_at(1)}; ROLLBACK;")
    assert [row[0] for row in wrong if row[-1] != "t"] == ["balance of all customers"]


@pytest.mark.parametrize(
    ("condition", "change"),
    [
        ("condition 1", "UPDATE district SET d_ytd = d_ytd + 1 WHERE d_id = 4"),
        ("condition 2", "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_id = 4"),
        ("condition 3", "DELETE FROM new_order WHERE no_d_id = 2 AND no_o_id = 2500"),
        ("condition 4", "DELETE FROM order_line WHERE ol_d_id = 9 AND ol_o_id = 17 AND ol_number = 1"),
    ],
)
def test_each_condition_sees_what_it_is_about(orders, condition, change):
    (found,) = broken(orders, change)
    assert found.startswith(condition)


def test_last_names_are_those_of_an_independent_computation(orders):
    found = ask(orders, "SELECT n, tpcc_last_name(n) FROM generate_series(0, 999) AS n")
    assert found == [(str(n), "".join(SYLLABLES[int(digit)] for digit in f"{n:03}")) for n in range(1000)]


def test_the_first_thousand_customers_of_a_district_have_one_each_of_all_last_names(orders):
    rows = ask(orders, "SELECT count(DISTINCT c_last) FROM customer WHERE c_id <= 1000 GROUP BY c_d_id")
    assert rows == [("1000",)] * 10


def test_values_lie_in_their_ranges_and_reach_both_ends(orders):
    ranges = ask(
        orders,
        """
        SELECT min(s_quantity), max(s_quantity) FROM stock;
        SELECT min(o_ol_cnt), max(o_ol_cnt) FROM orders;
        SELECT min(ol_i_id), max(ol_i_id) > 99990 FROM order_line;
        SELECT min(i_price), max(i_price) FROM item;
        SELECT min(length(c_data)), max(length(c_data)) FROM customer;
        SELECT min(length(i_data)), max(length(i_data)) FROM item;
        """,
    )
    assert ranges[:2] == [("10", "100"), ("5", "15")]
    assert ranges[2] == ("1", "t")
    assert (float(ranges[3][0]), float(ranges[3][1])) == (pytest.approx(1, abs=0.05), pytest.approx(100, abs=0.05))
    assert ranges[4:] == [("300", "500"), ("26", "50")]


def test_a_tenth_of_items_is_original_and_a_tenth_of_customers_has_bad_credit(orders):
    ((items,), (customers,)) = ask(
        orders,
        "SELECT count(*) FROM item WHERE i_data LIKE '%ORIGINAL%'; SELECT count(*) FROM customer WHERE c_credit = 'BC'",
    )
    assert 9_500 < int(items) < 10_500
    assert 2_700 < int(customers) < 3_300


def test_each_customer_ordered_once_in_no_order(orders):
    ((same,),) = ask(orders, "SELECT count(*) FROM orders WHERE o_id = o_c_id")
    assert int(same) < 30


@pytest.mark.parametrize("statements", ["client", "server"])
@pytest.mark.parametrize("access", ["standard", "pareto"])
def test_all_transactions_leave_consistent_data(orders, tmp_path, statements, access):
    before = ask(orders, "SELECT count(*) FROM orders; SELECT sum(w_ytd) FROM warehouse")
    arguments = []
    for script in WORKLOAD.scripts_for({"statements": statements, "access": access}):
        path = tmp_path / script.file.replace("/", "-")
        path.write_text(script.text)
        arguments += ["-f", f"{path}@{script.weight}"]
    pgbench = Path(orders["psql"]).with_name("pgbench")
    dsn = orders["dsn"].replace("dbname=postgres", "dbname=orders")
    done = subprocess.run(
        [pgbench, "-n", "-M", "prepared", "-c", "3", "-t", "100", "-s", "1", "--max-tries=10", "--random-seed=7", *arguments, dsn],
        text=True, capture_output=True, check=False, env={**os.environ, "LC_ALL": "C"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "number of transactions actually processed: 300/300" in done.stdout
    assert broken(orders) == []
    after = ask(orders, "SELECT count(*) FROM orders; SELECT sum(w_ytd) FROM warehouse")
    assert 90 < int(after[0][0]) - int(before[0][0]) < 180
    assert float(after[1][0]) > float(before[1][0])


def test_an_order_of_an_unknown_item_leaves_nothing_behind(orders):
    before = ask(orders, "SELECT max(o_id) FROM orders WHERE o_d_id = 1")
    made = ask(orders, "SELECT tpcc_new_order(1, 1, 5, ARRAY[10, 0], ARRAY[1, 1], ARRAY[3, 4]) IS NULL")
    assert made == [("t",)]
    assert ask(orders, "SELECT max(o_id) FROM orders WHERE o_d_id = 1") == before
    assert broken(orders) == []


def test_an_order_costs_what_an_independent_computation_says(orders):
    rows = ask(orders, "SELECT i_price FROM item WHERE i_id IN (10, 20) ORDER BY i_id")
    query = "SELECT c_discount, w_tax, d_tax FROM customer, warehouse, district WHERE c_d_id = 1 AND c_id = 5 AND d_id = 1"
    ((discount, *taxes),) = ask(orders, query)
    ((total,),) = ask(orders, "SELECT tpcc_new_order(1, 1, 5, ARRAY[20, 10], ARRAY[1, 1], ARRAY[3, 4])")
    expected = (4 * float(rows[0][0]) + 3 * float(rows[1][0])) * (1 - float(discount)) * (1 + sum(map(float, taxes)))
    assert float(total) == pytest.approx(expected)
    assert broken(orders) == []
