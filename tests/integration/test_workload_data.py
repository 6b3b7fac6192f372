"""Data that SQL makes, on a real server: checks that see damage, and answers that an independent computation gives too."""

import itertools
import math
from collections import defaultdict
from functools import partial

import pytest

from databases import ask, database_of, drive, statement, wrong
from pgstrata.workloads import builtin_workloads

pytestmark = [pytest.mark.server, pytest.mark.timeout(300)]

WORKLOADS = builtin_workloads()
DAMAGE = {
    "sales": ("UPDATE sale SET quantity = quantity + 1 WHERE sale_id = 4711", "quantity of all sales"),
    "articles": ("UPDATE article_gist SET body = body || 'x' WHERE id = 17", "articles that both have"),
    "events": ("UPDATE event SET value = value + 1 WHERE event_id = 99999", "values in hundredths"),
    "trade": (
        "UPDATE item SET received = received + 1 WHERE order_id = 4711 AND line = 1",
        "days until all items were received",
    ),
}


def made_of(server, kind):
    """A kind of data, and a way to ask a database with it."""
    data = next(workload.data for workload in WORKLOADS.values() if workload.data.name == kind)
    with database_of(server, data) as name:
        yield data, partial(ask, server, name)


@pytest.fixture(scope="module")
def sales(running_server):
    yield from made_of(running_server, "sales")


@pytest.fixture(scope="module")
def articles(running_server):
    yield from made_of(running_server, "articles")


@pytest.fixture(scope="module")
def events(running_server):
    yield from made_of(running_server, "events")


@pytest.fixture(scope="module")
def trade(running_server):
    yield from made_of(running_server, "trade")


@pytest.fixture(params=DAMAGE)
def made(request):
    """One kind of data after the other."""
    return request.getfixturevalue(request.param)


def test_what_was_made_passes_its_checks_and_a_damaged_row_does_not(running_server, made):
    data, asking = made
    change, item = DAMAGE[data.name]
    assert wrong(running_server, asking.args[1], data.checks_at(1)) == []
    assert wrong(running_server, asking.args[1], data.checks_at(1), change) == [item]


def test_the_size_of_a_unit_is_about_what_is_forecast(made):
    data, asking = made
    ((size,),) = asking("SELECT pg_database_size(current_database())")
    empty = 8_000_000
    assert 0.7 < (int(size) - empty) / data.size(1) < 1.3


def test_every_workload_runs_on_its_data_and_leaves_them_consistent(running_server, made, tmp_path):
    data, asking = made
    for workload in WORKLOADS.values():
        if workload.data.name == data.name:
            drive(running_server, asking.args[1], tmp_path, workload.scripts_for({}))
    if data.consistency:
        assert wrong(running_server, asking.args[1], data.consistency_at(1)) == []


# ------------------------------------------------------------------------------------------------- sales


def rows_of(asking, table):
    columns = [
        name
        for (name,) in asking(f"SELECT attname FROM pg_attribute WHERE attrelid = '{table}'::regclass AND attnum > 0")
    ]
    return [dict(zip(columns, row, strict=True)) for row in asking(f"SELECT * FROM {table}")]


def by_key(asking, table):
    return {row[f"{table}_id"]: row for row in rows_of(asking, table)}


def test_a_star_join_gives_what_is_computed_from_the_tables(sales):
    _, asking = sales
    (script,) = WORKLOADS["star-join"].scripts_for({})
    ((busiest,),) = asking(
        "SELECT customer_id FROM sale GROUP BY customer_id ORDER BY count(*) DESC, customer_id LIMIT 1"
    )
    dims = {
        name: by_key(asking, name)
        for name in ("day", "store", "product", "supplier", "customer", "promotion", "channel")
    }
    expected = defaultdict(list)
    for sale in (row for row in rows_of(asking, "sale") if row["customer_id"] == busiest):
        day, store, product, promotion = (
            dims[name][sale[f"{name}_id"]] for name in ("day", "store", "product", "promotion")
        )
        if int(day["year"]) < 2016 or int(store["square_metres"]) <= 100 or float(promotion["reduction"]) >= 0.3:
            continue
        supplier = dims["supplier"][product["supplier_id"]]
        key = (
            day["year"], day["quarter"], store["region"], product["category"], supplier["country"],
            dims["customer"][busiest]["segment"], promotion["kind"], dims["channel"][sale["channel_id"]]["name"],
        )  # fmt: skip
        expected[key].append(int(sale["quantity"]) * float(sale["price"]))
    found = asking(statement(script, customer=busiest))
    assert len(expected) > 3
    assert {row[:8]: (int(row[8]), pytest.approx(float(row[9]))) for row in found} == {
        key: (len(values), sum(values)) for key, values in expected.items()
    }


def test_a_heavyweight_query_gives_what_is_computed_from_the_tables(sales):
    _, asking = sales
    (script,) = WORKLOADS["heavyweight"].scripts_for({})
    dims = {name: by_key(asking, name) for name in ("product", "promotion", "customer")}
    groups = defaultdict(list)
    for sale in rows_of(asking, "sale"):
        if 100 <= int(sale["day_id"]) <= 130 and int(dims["customer"][sale["customer_id"]]["born"]) < 2000:
            product = dims["product"][sale["product_id"]]
            price, quantity = float(sale["price"]), int(sale["quantity"])
            reduction = float(dims["promotion"][sale["promotion_id"]]["reduction"])
            rough = math.sqrt(abs(math.sin(price) * math.cos(quantity))) * math.exp(
                -reduction
            ) + price**0.3 * math.atan2(quantity, price)
            groups[product["name"], product["category"]].append((price, quantity * price * (1 - reduction), rough))
    found = asking(statement(script, first=100))
    assert len(found) == 50
    for name, category, number, revenue, spread, roughness, *_ in found:
        values = groups[name, category]
        logs = [math.log(price) for price, _, _ in values]
        mean = sum(logs) / len(logs)
        assert int(number) == len(values)
        assert float(revenue) == pytest.approx(sum(each for _, each, _ in values))
        assert float(spread) == pytest.approx(math.sqrt(sum((each - mean) ** 2 for each in logs) / (len(logs) - 1)))
        assert float(roughness) == pytest.approx(sum(each for _, _, each in values) / len(values))
    spreads = [float(row[4]) for row in found]
    assert spreads == sorted(spreads, reverse=True)


# ------------------------------------------------------------------------------------------------- texts


def words_of(asking):
    return {int(number): body.split() for number, body in asking("SELECT id, body FROM article_gin")}


def script_of(name, index):
    return next(each for each in WORKLOADS["full-text"].scripts_for({"index": index}) if each.file.endswith(name))


def test_words_are_distinct_and_occur_as_zipf_has_it(articles):
    _, asking = articles
    ((distinct,),) = asking("SELECT count(DISTINCT article_word(n)) FROM generate_series(1, 32767) AS n")
    assert distinct == "32767"
    shares = [int(n) for (n,) in asking("SELECT count(*) FROM article_gin, unnest(string_to_array(body, ' ')) AS word "
                                        "WHERE word IN (article_word(1), article_word(100)) GROUP BY word ORDER BY 1 DESC")]  # fmt: skip
    # 1 of 15 words has rank 1; rank 100 lies in the seventh octave, with 64 ranks
    assert shares[0] / shares[1] == pytest.approx(64, rel=0.15)


@pytest.mark.parametrize("index", ["gin", "gist"])
def test_matches_and_phrases_are_those_of_the_texts(articles, index):
    _, asking = articles
    words = words_of(asking)
    ((a, b),) = asking("SELECT article_word(3), article_word(40)")
    ((found,),) = asking(statement(script_of("match.sql", index), a=3, b=40))
    assert int(found) == sum(a in text and b in text for text in words.values()) > 0
    phrases = asking(statement(script_of("phrase.sql", index), a=3, b=40))
    expected = sorted(n for n, text in words.items() if (a, b) in itertools.pairwise(text))
    assert [int(number) for number, _ in phrases] == expected[:20]
    assert expected


@pytest.mark.parametrize("index", ["gin", "gist"])
def test_the_best_articles_have_a_word_and_none_that_fits_better_is_left_out(articles, index):
    _, asking = articles
    query = statement(script_of("ranked.sql", index), a=20, b=400)
    found = asking(query)
    ((a, b),) = asking("SELECT article_word(20), article_word(400)")
    words = words_of(asking)
    assert len(found) == 10
    assert all(a in words[int(number)] or b in words[int(number)] for number, _, _ in found)
    assert found == asking(f"SET enable_bitmapscan = off; SET enable_indexscan = off; {query}")


# ---------------------------------------------------------------------------------------------- readings


def test_ten_readings_are_appended_and_the_latest_are_summed_up(events):
    _, asking = events
    append, latest = (script for script in WORKLOADS["insert-heavy"].scripts_for({}))
    ((before,),) = asking("SELECT max(event_id) FROM event")
    asking(statement(append, device=7, value=500))
    rows = asking(f"SELECT device_id, kind, value FROM event WHERE event_id > {before} ORDER BY event_id")
    assert rows == [(str((7 + n * 97) % 1000 + 1), str(n), f"{(500 + n) / 100:g}") for n in range(1, 11)]
    devices = sorted((at, float(value)) for at, value in asking("SELECT at, value FROM event WHERE device_id = 105"))[
        -100:
    ]
    ((number, first, last, mean),) = asking(statement(latest, device=105))
    assert (int(number), first, last) == (len(devices), devices[0][0], devices[-1][0])
    assert float(mean) == pytest.approx(sum(value for _, value in devices) / len(devices))


# ------------------------------------------------------------------------------------------------ drawing


def test_what_rows_are_drawn_with_is_the_same_as_on_other_versions(running_server):
    """As 9.6, 13, 14, 16 and 18 said."""
    found = ask(running_server, "postgres", "SELECT hashint8(123456789012), hashint8(-5), hashint8(7000000000000042)")
    assert found == [("1645134813", "1412886042", "1591770861")]
