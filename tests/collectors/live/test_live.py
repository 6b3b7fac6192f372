"""What a recorder reads of its server's answers: classes of sessions, heads of chains, what came to counters."""

import pytest

from archives import use
from pgstrata.collectors.live.counters import counters_period, counters_statement, reset_views, server_rates
from pgstrata.collectors.live.horizon import read_horizon
from pgstrata.collectors.live.host import HostReader
from pgstrata.collectors.live.relations import (
    MOST_ASKED,
    RelationsReader,
    keep_busiest,
    read_relations,
    relations_period,
    relations_statement,
)
from pgstrata.collectors.live.sessions import MOST_APPLICATIONS, OTHERS, SessionsReader, sessions_statement
from pgstrata.collectors.live.statements import (
    MOST_KEPT,
    OWN,
    StatementsReader,
    by_key,
    counts_statement,
    keep_largest,
    key_of,
    read_texts,
    resets_statement,
    texts_statement,
)
from pgstrata.collectors.pgstat.seconds import _RATES
from pgstrata.errors import ParseError
from pgstrata.model.archive import HOST_RATES, REST, SERVER_RATES, HolderKind, Relation, RelationUse

VERSIONS = (100000, 110000, 120000, 130000, 140000, 150000, 160000, 170000, 180000)


def row(pid, state="active", wait="", query_id="7", blockers="", **more):
    wait_type, _, event = wait.partition("/")
    words = [
        more.get("kind", "client backend"), "shop", "clerk", more.get("application", "app"), state, wait_type, event,
        query_id, more.get("query", ""), str(pid), str(more.get("held", 0)), blockers,
    ]  # fmt: skip
    return "\t".join(words) + "\n"


def read(*rows):
    return SessionsReader().read("".join(rows).encode())


def test_sessions_that_do_the_same_are_counted_together():
    look = read(row(1), row(2), row(3, wait="IO/DataFileRead"), row(4, application="other"))
    assert sorted(look.counts.values()) == [1, 1, 2]
    assert all(each.statement == "7" and each.is_load for each in look.counts)


def test_the_head_of_a_chain_is_found_through_those_between():
    look = read(
        row(1, "idle in transaction", "Client/ClientRead", query_id="9", held=40),
        row(2, wait="Lock/transactionid", blockers="1"),
        row(3, wait="Lock/tuple", blockers="2"),
        row(4, wait="Lock/tuple", blockers="3 2"),
    )
    assert {(each.root.statement, each.pid, each.held) for each in look.blocked} == {("9", 1, 40)}
    assert sum(look.blocked.values()) == 3


@pytest.mark.parametrize(("blockers", "root"), [("99", None), ("0", "(prepared transaction)"), ("5", None)])
def test_a_head_that_was_not_seen_is_not_made_up(blockers, root):
    look = read(row(5, wait="Lock/transactionid", blockers=blockers))
    ((blocking, _),) = look.blocked.items()
    assert (blocking.root.state if blocking.root else None) == root
    assert blocking.pid == 0


def test_a_circle_ends():
    look = read(row(1, wait="Lock/transactionid", blockers="2"), row(2, wait="Lock/transactionid", blockers="1"))
    assert sum(look.blocked.values()) == 2


def test_without_an_id_statements_are_told_apart_by_their_texts_without_constants():
    reader = SessionsReader()
    rows = (
        row(1, query_id="", query="SELECT  a FROM t WHERE b = ?"),
        row(2, query_id="", query="select a from t where b=?"),
    )
    look = reader.read("".join(rows).encode())
    assert len({each.statement for each in look.counts}) <= 2
    assert all(key.startswith("q") for key in reader.texts)
    assert "select a from t where b = ?" in reader.texts.values()


def test_names_of_applications_with_numbers_do_not_fill_the_archive():
    look = read(*(row(number, application=f"worker-{number}") for number in range(MOST_APPLICATIONS + 50)))
    names = {each.application for each in look.counts}
    assert len(names) == MOST_APPLICATIONS + 1
    assert OTHERS in names


@pytest.mark.parametrize("text", ["too\tfew\n", "a\tb\tc\td\te\tf\tg\th\ti\tnone\t1\t\n", "x\t1\t2\t\n"])
def test_a_row_of_an_unknown_shape_is_an_error(text):
    with pytest.raises(ParseError, match="unknown shape"):
        SessionsReader().read(text.encode())


def test_old_names_of_wait_events_are_spelt_as_the_newest_server_does():
    (each,) = read(row(1, wait="LWLock/buffer_mapping")).counts
    assert each.event == "BufferMapping"


@pytest.mark.parametrize("version", VERSIONS)
def test_statements_are_marked_as_the_recorders_own_and_hold_no_placeholder(version):
    texts = [
        sessions_statement(version), counters_statement(version), counts_statement(version, "public"),
        resets_statement(version, "public"), texts_statement(["7"], "public"),
    ]  # fmt: skip
    for text in texts:
        assert OWN in text
        assert "@" not in text.replace("'@'", "")


def counted(**uses):
    rows = (f"{key}\t{each.calls}\t{each.seconds}\t0\t0\t0\t0\n" for key, each in uses.items())
    return "".join(rows).encode()


def test_what_came_to_statements_is_told_from_the_second_look_on():
    reader = StatementsReader()
    assert reader.read(counted(a=use(10, 1.0)), b"0\t1") is None
    found = reader.read(counted(a=use(15, 2.0), b=use(3, 0.5)), b"0\t1")
    assert {key: each.calls for key, each in found.uses.items()} == {"a": 5, "b": 3}
    assert found.complete
    assert reader.read(counted(a=use(15, 2.0), b=use(3, 0.5)), b"0\t1").uses == {}


@pytest.mark.parametrize(
    ("second", "resets"),
    [(counted(a=use(2, 0.1)), b"0\t1"), (counted(b=use(1, 1.0)), b"0\t1"), (counted(a=use(15, 2.0)), b"1\t1")],
)
def test_resets_and_evictions_by_others_are_noticed(second, resets):
    reader = StatementsReader()
    reader.read(counted(a=use(10, 1.0)), b"0\t1")
    found = reader.read(second, resets)
    assert not found.complete
    assert all(each.calls >= 0 for each in found.uses.values())


def entries(**uses):
    return b"".join(counted(**{key.replace("_", "/"): each}) for key, each in uses.items())


def test_an_entry_of_one_user_that_was_evicted_does_not_count_what_others_did_long_ago():
    reader = StatementsReader()
    reader.read(entries(a_1_5=use(1_000_000, 1e3), a_2_5=use(1_000_000, 1e3)), b"0\t1")
    found = reader.read(entries(a_1_5=use(1_000_010, 1001.0)), b"1\t1")
    assert found.uses["a"].calls == 10
    assert not found.complete
    found = reader.read(entries(a_1_5=use(1_000_010, 1001.0), a_2_5=use(3, 0.1)), b"1\t1")
    assert found.uses["a"].calls == 3


def test_statements_that_a_role_was_not_allowed_to_see_do_not_count_from_their_beginning():
    reader = StatementsReader()
    reader.read(counted(**{"/1/5": use(1_000_000, 1e3), "b/2/5": use(5, 0.1)}), b"0\t1")
    found = reader.read(entries(a_1_5=use(1_000_010, 1001.0), b_2_5=use(6, 0.2)), b"0\t1")
    assert {key: each.calls for key, each in found.uses.items()} == {"b": 1}
    assert not found.complete
    found = reader.read(entries(a_1_5=use(1_000_020, 1001.0), b_2_5=use(6, 0.2)), b"0\t1")
    assert {key: each.calls for key, each in found.uses.items()} == {"a": 10}


def test_a_counter_that_went_backwards_alone_is_one_that_was_made_anew():
    reader = StatementsReader()
    reader.read(b"a\t1\t1\t500\t0\t0\t0\n", b"0\t1")
    found = reader.read(b"a\t2\t2\t3\t0\t0\t0\n", b"0\t1")
    assert (found.uses["a"].rows, found.complete) == (3, False)


def test_before_14_ids_with_one_text_are_summed_up():
    uses, texts = {"7": use(1, 0.5), "8": use(2, 0.25)}, {"7": "select ?", "8": "select ?"}
    (found,) = by_key(uses, texts, 130000).values()
    assert (found.calls, found.seconds) == (3, 0.75)
    assert by_key(uses, texts, 140000) == uses


def test_after_a_restart_nothing_is_subtracted_from_what_was_before():
    reader = StatementsReader()
    reader.read(counted(a=use(10, 1.0)), b"0\t1")
    reader.forget()
    assert reader.read(counted(a=use(2, 0.1)), b"0\t1") is None


def test_the_statements_with_most_time_stand_alone_and_the_others_are_summed_up():
    uses = {f"q{number}": use(1, float(number)) for number in range(MOST_KEPT + 20)}
    kept = keep_largest(uses)
    assert len(kept) == MOST_KEPT + 1
    assert kept[REST].calls == 20
    assert sum(each.seconds for each in kept.values()) == sum(each.seconds for each in uses.values())


def test_before_14_statements_are_told_apart_by_their_texts_as_sessions_tell_them():
    assert key_of("7", "select ?", 140000) == "7"
    assert key_of("7", "select ?", 130000).startswith("q")
    assert key_of("7", "", 130000) == "7"
    assert read_texts(b"7\tSELECT  ?\n8\t\n") == {"7": "select ?"}


def test_rates_are_kept_by_the_names_that_the_collectors_give():
    assert set(_RATES) | {"connections"} == set(SERVER_RATES)
    reader = HostReader()
    reader.read(LATER, 1.0)
    assert set(reader.read(LATER, 2.0)) <= set(HOST_RATES)


LATER = {
    "/proc/stat": b"cpu  10 0 10 100 5 0 0 1 0 0\nctxt 100\nprocs_running 2\nprocs_blocked 0\n",
    "/proc/vmstat": b"pgfault 10\npgmajfault 1\nother 7\n",
    "/proc/meminfo": b"MemTotal: 100 kB\nMemAvailable: 50 kB\nDirty: 1 kB\nWriteback: 0 kB\n",
    "/proc/pressure/cpu": b"some avg10=0.00 avg60=0.00 avg300=0.00 total=100\n",
}


def test_the_host_is_known_from_the_second_look_on():
    reader = HostReader()
    assert reader.read(LATER, 1.0) is None
    more = {**LATER, "/proc/stat": LATER["/proc/stat"].replace(b"cpu  10 0", b"cpu  110 0")}
    assert reader.read(more, 2.0)["host_user_cpu"] == pytest.approx(1.0)
    assert reader.read({}, 3.0) is None


def test_counters_that_were_reset_give_no_rates_and_are_named():
    before = {"database.xact_commit": 100.0, "database.stats_reset": 1.0, "lsn.position": 10.0}
    after = {"database.xact_commit": 50.0, "database.stats_reset": 2.0, "lsn.position": 30.0, "database.backends": 4.0}
    assert dict(server_rates(before, after, 2.0)) == {"wal_bytes": 10.0, "connections": 4.0}
    assert reset_views(before, after) == ("database",)


def test_old_servers_with_many_tables_are_asked_less_often():
    assert counters_period(140000, 10_000_000) == 10
    assert counters_period(140000, 100_000) == counters_period(150000, 10_000_000) == 1


def relation(name, table="", **counts):
    """A row of the server's answer about a table or an index."""
    names = [
        "sequential_scans",
        "sequential_rows",
        "index_scans",
        "index_rows",
        "inserted",
        "updated",
        "hot_updated",
        "deleted",
        "blocks_hit",
        "blocks_read",
        "vacuums",
        "analyzes",
        "live_rows",
        "dead_rows",
    ]
    words = ["index" if table else "table", name, table, *(str(counts.get(each, 0)) for each in names)]
    return ("\t".join(words) + "\n").encode()


STOCK = Relation(name="public.stock")


def test_what_came_to_a_table_is_the_difference_of_two_looks():
    reader = RelationsReader()
    assert reader.read(relation("public.stock", sequential_scans=3, dead_rows=4)) is None
    found = reader.read(relation("public.stock", sequential_scans=5, dead_rows=9))
    assert found == {STOCK: RelationUse(sequential_scans=2, dead_rows=9)}
    assert reader.read(relation("public.stock", sequential_scans=5, dead_rows=20)) == {}, "nothing was done to it"


def test_a_table_that_is_new_or_was_reset_counts_from_its_beginning():
    reader = RelationsReader()
    reader.read(relation("public.stock", updated=900))
    found = reader.read(relation("public.stock", updated=5) + relation("public.fresh", inserted=7))
    assert found[STOCK].updated == 5
    assert found[Relation(name="public.fresh")].inserted == 7


def test_a_table_that_was_not_asked_for_before_does_not_count_from_its_beginning():
    others = b"".join(relation(f"public.t{n}", blocks_hit=1000) for n in range(MOST_ASKED - 1))
    reader = RelationsReader()
    reader.read(others + relation("public.overtaken", blocks_hit=1000))
    found = reader.read(others + relation("public.overtaking", blocks_hit=1001) + relation("i", "t1", index_scans=2))
    assert found == {Relation(name="i", table="t1"): RelationUse(index_scans=2)}


def test_the_busiest_tables_and_indexes_stand_alone_and_the_sums_are_kept():
    rows = b"".join(relation(f"public.t{n}", blocks_hit=n + 1) for n in range(50))
    rows += b"".join(relation(f"public.i{n}", "public.t1", index_scans=1, blocks_hit=n + 1) for n in range(40))
    uses = read_relations(rows)
    kept = keep_busiest(uses)
    assert sum(not each.is_index for each in kept) == sum(each.is_index for each in kept) == 31
    assert kept[Relation(name=REST)].blocks_hit == sum(range(1, 21))
    assert kept[Relation(name=REST, table=REST)].index_scans == 10
    assert sum(use.blocks_hit for use in kept.values()) == sum(use.blocks_hit for use in uses.values())


@pytest.mark.parametrize(
    "rows", [b"table\tx\n", b"view\tx\t" + b"\t1" * 14 + b"\n", b"table\tx\t" + b"\tone" * 14 + b"\n"]
)
def test_an_unknown_answer_about_tables_is_refused(rows):
    with pytest.raises(ParseError, match="pg_stat_user_tables"):
        read_relations(rows)


def test_a_server_is_asked_for_as_many_relations_as_the_reader_expects():
    assert relations_statement().count(f"LIMIT {MOST_ASKED}") == 2


def test_many_tables_are_looked_at_seldom_and_very_many_never():
    assert [relations_period(size) for size in (1 << 19, 1 << 20, 1 << 25)] == [60, 600, None]


def test_the_holder_of_the_oldest_snapshot_is_read():
    found = read_horizon(b"replication slot\tolder_standby\t0\t\t123456\t0\n")
    assert (found.holder.kind, found.holder.name, found.age) == (HolderKind.SLOT, "older_standby", 123456)
    assert read_horizon(b"") is None
    with pytest.raises(ParseError, match="oldest snapshot"):
        read_horizon(b"demon\tx\t0\t\t1\t0\n")
