"""The queries of the analytic workload on a real server, each against a computation from the rows of its tables."""

import datetime as dt
import re
from collections import Counter, defaultdict
from decimal import Decimal
from functools import partial
from types import SimpleNamespace

import pytest

from databases import ask, database_of
from pgstrata.workloads import builtin_workloads

pytestmark = [pytest.mark.server, pytest.mark.timeout(300)]

ANALYTIC = builtin_workloads()["analytic"]
(SCRIPT,) = ANALYTIC.scripts_for({})
QUERIES = {
    found["name"]: found["text"].replace(":scale", "1")
    for found in re.finditer(r"/\* (?P<name>[a-z -]+) \*/ (?P<text>[^;]+;)", SCRIPT.text)
}
TABLES = {
    "region": "region_id:int name",
    "nation": "nation_id:int name region_id:int",
    "supplier": "supplier_id:int name street nation_id:int phone balance:Decimal note",
    "customer": "customer_id:int name street nation_id:int phone balance:Decimal segment note",
    "part": "part_id:int name maker brand kind size:int container price:Decimal note",
    "supply": "part_id:int supplier_id:int available:int cost:Decimal note",
    "orders": "order_id:int customer_id:int status total:Decimal ordered:date priority clerk note",
    "item": (
        "order_id:int line:int part_id:int supplier_id:int quantity:Decimal price:Decimal discount:Decimal tax:Decimal "
        "returned status shipped:date committed:date received:date instructions mode note"
    ),
}
READERS = {"": str, "int": int, "Decimal": Decimal, "date": dt.date.fromisoformat}


def day(text):
    return dt.date.fromisoformat(text)


@pytest.fixture(scope="module")
def asking(running_server):
    with database_of(running_server, ANALYTIC.data) as name:
        yield partial(ask, running_server, name)


@pytest.fixture(scope="module")
def world(asking):
    """All rows, linked with each other."""
    found = SimpleNamespace()
    for table, described in TABLES.items():
        columns = [word.partition(":")[::2] for word in described.split()]
        rows = [
            SimpleNamespace(**{name: READERS[kind](value) for (name, kind), value in zip(columns, row, strict=True)})
            for row in asking(f"SELECT {', '.join(name for name, _ in columns)} FROM {table} ORDER BY 1, 2")
        ]
        setattr(found, table, rows)
    nations = {row.nation_id: row for row in found.nation}
    for row in found.nation:
        row.region = found.region[row.region_id].name
    for row in (*found.supplier, *found.customer):
        row.nation = nations[row.nation_id].name
        row.region = nations[row.nation_id].region
    suppliers = {row.supplier_id: row for row in found.supplier}
    parts = {row.part_id: row for row in found.part}
    customers = {row.customer_id: row for row in found.customer}
    supplies = {(row.part_id, row.supplier_id): row for row in found.supply}
    orders = {row.order_id: row for row in found.orders}
    for row in found.orders:
        row.customer, row.items = customers[row.customer_id], []
    for row in found.supply:
        row.part, row.supplier, row.items = parts[row.part_id], suppliers[row.supplier_id], []
    for row in found.item:
        row.order, row.supply = orders[row.order_id], supplies[row.part_id, row.supplier_id]
        row.part, row.supplier, row.customer = row.supply.part, row.supply.supplier, row.order.customer
        row.revenue = row.price * (1 - row.discount)
        row.order.items.append(row)
        row.supply.items.append(row)
    return found


def summed(pairs):
    totals = defaultdict(Decimal)
    for key, value in pairs:
        totals[key] += value
    return totals


def pricing_summary(world):
    groups = defaultdict(list)
    for item in world.item:
        if item.shipped <= day("1998-09-02"):
            groups[item.returned, item.status].append(item)
    return [
        (
            *key, sum(i.quantity for i in items), sum(i.price for i in items), sum(i.revenue for i in items),
            sum(i.revenue * (1 + i.tax) for i in items), *(
                sum(getattr(i, name) for i in items) / len(items) for name in ("quantity", "price", "discount")
            ), len(items),
        )
        for key, items in sorted(groups.items())
    ]  # fmt: skip


def cheapest_supplier(world):
    least = {}
    for each in world.supply:
        if each.supplier.region == "Europe":
            least[each.part_id] = min(each.cost, least.get(each.part_id, each.cost))
    found = [
        each for each in world.supply
        if each.part.size == 15 and each.part.kind.endswith("brass") and each.supplier.region == "Europe"
        and each.cost == least[each.part_id]
    ]  # fmt: skip
    found.sort(key=lambda u: (-u.supplier.balance, u.supplier.nation, u.supplier.name, u.part_id))
    return [
        (u.supplier.balance, u.supplier.name, u.supplier.nation, u.part_id, u.part.maker, u.supplier.phone, u.cost)
        for u in found[:100]
    ]


def largest_open_orders(world):
    end = day("1995-03-15")
    totals = summed(
        ((i.order_id, i.order.ordered), i.revenue)
        for i in world.item if i.customer.segment == "buildings" and i.order.ordered < end < i.shipped
    )  # fmt: skip
    rows = [(key[0], total, key[1]) for key, total in totals.items()]
    return sorted(rows, key=lambda row: (-row[1], row[2], row[0]))[:10]


def late_orders_by_priority(world):
    late = Counter(
        o.priority for o in world.orders
        if day("1993-07-01") <= o.ordered < day("1993-10-01") and any(i.committed < i.received for i in o.items)
    )  # fmt: skip
    return sorted(late.items())


def revenue_within_a_region(world):
    totals = summed(
        (i.supplier.nation, i.revenue) for i in world.item
        if i.supplier.nation == i.customer.nation and i.supplier.region == "Asia" and i.order.ordered.year == 1994
    )  # fmt: skip
    return sorted(totals.items(), key=lambda row: -row[1])


def revenue_of_small_discounts(world):
    low, high = Decimal("0.05"), Decimal("0.07")
    return [(sum(
        i.price * i.discount for i in world.item
        if i.shipped.year == 1994 and low <= i.discount <= high and i.quantity < 24
    ),)]  # fmt: skip


def trade_between_two_nations(world):
    totals = summed(
        ((i.supplier.nation, i.customer.nation, i.shipped.year), i.revenue) for i in world.item
        if {i.supplier.nation, i.customer.nation} == {"France", "Germany"} and i.shipped.year in {1995, 1996}
    )  # fmt: skip
    return [(*key, total) for key, total in sorted(totals.items())]


def market_share(world):
    sold = [
        i for i in world.item
        if i.customer.region == "America" and i.order.ordered.year in {1995, 1996} and i.part.kind == "economy anodised steel"
    ]  # fmt: skip
    totals = summed((i.order.ordered.year, i.revenue) for i in sold)
    own = summed((i.order.ordered.year, i.revenue) for i in sold if i.supplier.nation == "Brazil")
    return [(year, own[year] / total) for year, total in sorted(totals.items())]


def profit_by_nation_and_year(world):
    totals = summed(
        ((i.supplier.nation, i.order.ordered.year), i.revenue - i.supply.cost * i.quantity)
        for i in world.item if "green" in i.part.name
    )  # fmt: skip
    rows = [(*key, total) for key, total in totals.items()]
    return sorted(rows, key=lambda row: (row[0], -row[1]))


def customers_who_returned_goods(world):
    totals = summed(
        (i.customer.customer_id, i.revenue) for i in world.item
        if day("1993-10-01") <= i.order.ordered < day("1994-01-01") and i.returned == "R"
    )  # fmt: skip
    known = {c.customer_id: c for c in world.customer}
    best = sorted(totals.items(), key=lambda row: (-row[1], row[0]))[:20]
    chosen = [(known[number], lost) for number, lost in best]
    return [(c.customer_id, c.name, lost, c.balance, c.nation, c.street, c.phone, c.note) for c, lost in chosen]


def most_valuable_stock(world):
    totals = summed((u.part_id, u.cost * u.available) for u in world.supply if u.supplier.nation == "Germany")
    limit = sum(totals.values()) * Decimal("0.006")
    rows = [(part, value) for part, value in totals.items() if value > limit]
    return sorted(rows, key=lambda row: (-row[1], row[0]))


def late_items_by_mode(world):
    late = [
        i for i in world.item
        if i.mode in {"mail", "ship"} and i.shipped < i.committed < i.received and i.received.year == 1994
    ]  # fmt: skip
    modes = defaultdict(Counter)
    for i in late:
        modes[i.mode][i.order.priority in {"1 urgent", "2 high"}] += 1
    return [(mode, counts[True], counts[False]) for mode, counts in sorted(modes.items())]


def orders_of_a_customer(world):
    made = Counter(o.customer_id for o in world.orders if not re.search("special.*requests", o.note))
    sizes = Counter(made[c.customer_id] for c in world.customer)
    return sorted(sizes.items(), key=lambda row: (-row[1], -row[0]))


def share_of_promotions(world):
    sold = [i for i in world.item if (i.shipped.year, i.shipped.month) == (1995, 9)]
    own = sum(i.revenue for i in sold if i.part.kind.startswith("promotional"))
    return [(100 * own / sum(i.revenue for i in sold),)]


def best_supplier(world):
    totals = summed(
        (i.supplier_id, i.revenue) for i in world.item if day("1996-01-01") <= i.shipped < day("1996-04-01")
    )
    best = max(totals.values())
    return [
        (s.supplier_id, s.name, s.street, s.phone, best) for s in world.supplier if totals[s.supplier_id] == best
    ]  # fmt: skip


def suppliers_by_kind_of_part(world):
    groups = defaultdict(set)
    for u in world.supply:
        p = u.part
        if (
            p.brand != "brand 45" and not p.kind.startswith("medium polished") and p.size in {49, 14, 23, 45, 19, 3, 36, 9}
            and not re.search("customer.*complaints", u.supplier.note)
        ):  # fmt: skip
            groups[p.brand, p.kind, p.size].add(u.supplier_id)
    rows = [(*key, len(found)) for key, found in groups.items()]
    return sorted(rows, key=lambda row: (-row[3], *row[:3]))


def small_quantities(world):
    by_part = defaultdict(list)
    for i in world.item:
        by_part[i.part_id].append(i)
    total = Decimal(0)
    for items in by_part.values():
        part = items[0].part
        if part.brand == "brand 23" and part.container in {"medium box", "medium bag", "medium can"}:
            limit = Decimal("0.2") * sum(i.quantity for i in items) / len(items)
            total += sum(i.price for i in items if i.quantity < limit)
    return [(total / 7,)]


def large_orders(world):
    rows = [
        (o.customer.name, o.customer_id, o.order_id, o.ordered, o.total, sum(i.quantity for i in o.items))
        for o in world.orders
        if sum(i.quantity for i in o.items) > 250
    ]
    return sorted(rows, key=lambda row: (-row[4], row[3], row[2]))[:100]


def revenue_of_chosen_parts(world):
    chosen = (("brand 12", "small", 1, 11, 15), ("brand 23", "medium", 10, 20, 30), ("brand 34", "large", 20, 30, 45))
    found = [
        i.revenue for i in world.item for brand, container, low, high, size in chosen
        if i.mode in {"air", "air express"} and i.instructions == "deliver in person" and i.part.brand == brand
        and i.part.container.startswith(container) and low <= i.quantity <= high and i.part.size <= size
    ]  # fmt: skip
    return [(sum(found),)]


def surplus_stock(world):
    names = set()
    for u in world.supply:
        sold = [i.quantity for i in u.items if i.shipped.year == 1994]
        if u.part.name.startswith("l") and u.supplier.nation == "Canada" and sold and u.available > sum(sold) / 2:
            names.add((u.supplier.name, u.supplier.street))
    return sorted(names)


def suppliers_who_kept_others_waiting(world):
    waiting = Counter()
    for order in (each for each in world.orders if each.status == "F"):
        late = {i.supplier_id for i in order.items if i.received > i.committed}
        if len(late) == 1 and len({i.supplier_id for i in order.items}) > 1:
            for i in order.items:
                if i.received > i.committed and i.supplier.nation in {"Egypt", "Iran", "Iraq", "Jordan"}:
                    waiting[i.supplier.name] += 1
    return sorted(waiting.items(), key=lambda row: (-row[1], row[0]))[:100]


def customers_without_orders(world):
    codes = {"13", "31", "23", "29", "30", "18", "17"}
    chosen = [c for c in world.customer if c.phone[:2] in codes]
    positive = [c.balance for c in chosen if c.balance > 0]
    mean = sum(positive) / len(positive)
    buyers = {o.customer_id for o in world.orders}
    groups = defaultdict(list)
    for c in chosen:
        if c.balance > mean and c.customer_id not in buyers:
            groups[c.phone[:2]].append(c.balance)
    return [(code, len(balances), sum(balances)) for code, balances in sorted(groups.items())]


def test_all_22_queries_have_names_of_their_own():
    assert len(QUERIES) == 22
    assert len(ANALYTIC.scripts_for({})) == 1
    assert ANALYTIC.profile


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_gives_what_is_computed_from_the_tables(asking, world, name):
    expected = globals()[re.sub("[ -]", "_", name)](world)
    found = asking(QUERIES[name])
    assert expected
    assert len(found) == len(expected)
    for row, values in zip(found, expected, strict=True):
        assert len(row) == len(values)
        for text, value in zip(row, values, strict=True):
            if isinstance(value, Decimal):
                assert float(text) == pytest.approx(float(value), rel=1e-12)
            else:
                assert text == str(value)
