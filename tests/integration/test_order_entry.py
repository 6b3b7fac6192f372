"""The data and transactions of order entry on a real server: values by clauses, conditions that damage breaks."""

from functools import partial

import pytest

from databases import ask, database_of, drive, wrong
from pgstrata.workloads import builtin_workloads

pytestmark = [pytest.mark.server, pytest.mark.timeout(300)]

WORKLOAD = builtin_workloads()["tpcc"]
DATA = WORKLOAD.data
SYLLABLES = ("BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING")


@pytest.fixture(scope="module")
def orders(running_server):
    """A way to ask a database with one warehouse."""
    with database_of(running_server, DATA) as name:
        yield partial(ask, running_server, name)


@pytest.fixture
def broken(running_server, orders):
    """The conditions that do not hold, after a change that is taken back."""
    return partial(wrong, running_server, orders.args[1], DATA.consistency_at(1))


def test_what_was_made_is_what_the_specification_counts(orders, broken):
    assert all(row[-1] == "t" for row in orders(DATA.checks_at(1)))
    assert broken() == []


def test_a_damaged_row_fails_the_check(running_server, orders):
    change = "UPDATE customer SET c_balance = 1 WHERE c_id = 7 AND c_d_id = 3"
    found = wrong(running_server, orders.args[1], DATA.checks_at(1), change)
    assert found == ["balance of all customers"]


@pytest.mark.parametrize(
    ("condition", "change"),
    [
        ("condition 1", "UPDATE district SET d_ytd = d_ytd + 1 WHERE d_id = 4"),
        ("condition 2", "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_id = 4"),
        ("condition 3", "DELETE FROM new_order WHERE no_d_id = 2 AND no_o_id = 2500"),
        ("condition 4", "DELETE FROM order_line WHERE ol_d_id = 9 AND ol_o_id = 17 AND ol_number = 1"),
    ],
)
def test_each_condition_sees_what_it_is_about(broken, condition, change):
    (found,) = broken(change)
    assert found.startswith(condition)


def test_last_names_are_those_of_an_independent_computation(orders):
    found = orders("SELECT n, tpcc_last_name(n) FROM generate_series(0, 999) AS n")
    assert found == [(str(n), "".join(SYLLABLES[int(digit)] for digit in f"{n:03}")) for n in range(1000)]


def test_the_first_thousand_customers_of_a_district_have_one_each_of_all_last_names(orders):
    rows = orders("SELECT count(DISTINCT c_last) FROM customer WHERE c_id <= 1000 GROUP BY c_d_id")
    assert rows == [("1000",)] * 10


def test_values_lie_in_their_ranges_and_reach_both_ends(orders):
    ranges = orders(
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
    ((items,), (customers,)) = orders(
        "SELECT count(*) FROM item WHERE i_data LIKE '%ORIGINAL%'; SELECT count(*) FROM customer WHERE c_credit = 'BC'",
    )
    assert 9_500 < int(items) < 10_500
    assert 2_700 < int(customers) < 3_300


def test_each_customer_ordered_once_in_no_order(orders):
    ((same,),) = orders("SELECT count(*) FROM orders WHERE o_id = o_c_id")
    assert int(same) < 30


@pytest.mark.parametrize("statements", ["client", "server"])
@pytest.mark.parametrize("access", ["standard", "pareto"])
def test_all_transactions_leave_consistent_data(running_server, orders, broken, tmp_path, statements, access):
    before = orders("SELECT count(*) FROM orders; SELECT sum(w_ytd) FROM warehouse")
    scripts = WORKLOAD.scripts_for({"statements": statements, "access": access})
    drive(running_server, orders.args[1], tmp_path, scripts, clients=3, transactions=100)
    assert broken() == []
    after = orders("SELECT count(*) FROM orders; SELECT sum(w_ytd) FROM warehouse")
    assert 90 < int(after[0][0]) - int(before[0][0]) < 180
    assert float(after[1][0]) > float(before[1][0])


def test_an_order_of_an_unknown_item_leaves_nothing_behind(orders, broken):
    before = orders("SELECT max(o_id) FROM orders WHERE o_d_id = 1")
    made = orders("SELECT tpcc_new_order(1, 1, 5, ARRAY[10, 0], ARRAY[1, 1], ARRAY[3, 4]) IS NULL")
    assert made == [("t",)]
    assert orders("SELECT max(o_id) FROM orders WHERE o_d_id = 1") == before
    assert broken() == []


def test_an_order_costs_what_an_independent_computation_says(orders, broken):
    rows = orders("SELECT i_price FROM item WHERE i_id IN (10, 20) ORDER BY i_id")
    query = (
        "SELECT c_discount, w_tax, d_tax FROM customer, warehouse, district WHERE c_d_id = 1 AND c_id = 5 AND d_id = 1"
    )
    ((discount, *taxes),) = orders(query)
    ((total,),) = orders("SELECT tpcc_new_order(1, 1, 5, ARRAY[20, 10], ARRAY[1, 1], ARRAY[3, 4])")
    expected = (4 * float(rows[0][0]) + 3 * float(rows[1][0])) * (1 - float(discount)) * (1 + sum(map(float, taxes)))
    assert float(total) == pytest.approx(expected)
    assert broken() == []
