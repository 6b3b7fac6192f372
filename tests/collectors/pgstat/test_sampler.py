from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from pgstrata.collectors.pgstat.sampler import VIEWS, PgstatCollector, parse_counters
from pgstrata.collectors.statements import compose_views
from pgstrata.errors import SqlError
from pgstrata.ports.server import QueryResult

ROWS = QueryResult(columns=("name", "value"), rows=(("lsn.position", "500"), ("io.hits", "")))

PACKAGE = "pgstrata.collectors.pgstat"


@dataclass
class FakeSql:
    failures: list = field(default_factory=list)
    asked: list = field(default_factory=list)

    def query(self, address, statement):
        self.asked.append(statement)
        if "pg_sleep" in statement:
            return QueryResult(columns=("pg_sleep",), rows=(("",),))
        if self.failures:
            raise SqlError("no", sqlstate=self.failures.pop(0))
        return ROWS


def capture(sql, version):
    server = SimpleNamespace(build=SimpleNamespace(version=SimpleNamespace(number=version)), address="there")
    return PgstatCollector().capture(SimpleNamespace(sql=sql, server=server))


@pytest.mark.parametrize(
    ("version", "chosen"),
    [(90624, 90600), (100023, 100000), (130023, 100000), (140000, 140000), (150019, 140000), (160015, 160000),
     (170011, 170000), (180006, 180000), (190001, 180000), (210000, 180000), (90500, 90200), (90123, 90100),
     (90023, 80300), (80323, 80300)],
)  # fmt: skip
def test_the_highest_statements_that_are_not_newer_than_the_server_are_used(version, chosen):
    assert compose_views(PACKAGE, VIEWS, version)[0][0] == chosen


def test_older_statements_follow_in_case_the_server_lacks_something():
    assert [number for number, _ in compose_views(PACKAGE, VIEWS, 170000)] == [
        170000,
        160000,
        140000,
        100000,
        90600,
        90200,
        90100,
        80300,
    ]


@pytest.mark.parametrize(("number", "statement"), compose_views(PACKAGE, VIEWS, 10**6))
def test_all_statements_ask_for_what_every_version_has(number, statement):
    for name in (
        "database.xact_commit",
        "database.blks_hit",
        "database.size",
        "lsn.position",
        "checkpoints.timed",
        "checkpoints.requested",
    ):
        assert f"'{name}'" in statement
    assert ("'tables.autovacuum_count'" in statement) == (number >= 90100)
    assert ("pg_stat_wal " in statement) == (number >= 140000)
    assert ("pg_stat_io" in statement) == (number >= 160000)
    assert ("_xlog_" in statement) == (number < 100000)
    assert ("pg_stat_checkpointer" in statement) == (number >= 170000)
    assert ";" not in "".join(line for line in statement.splitlines() if not line.startswith("--"))


def test_a_capture_names_its_statements_and_keeps_nulls_as_nothing():
    captured = capture(FakeSql(), 180006)
    assert captured == b"snapshot\t180000\nlsn.position\t500\nio.hits\t\n"
    assert parse_counters(captured) == {"snapshot": 180000.0, "lsn.position": 500.0}


def test_up_to_14_the_collector_of_statistics_is_given_time():
    old, new = FakeSql(), FakeSql()
    capture(old, 140023)
    capture(new, 150000)
    assert ["pg_sleep" in statement for statement in old.asked] == [True, False]
    assert ["pg_sleep" in statement for statement in new.asked] == [False]


def test_a_server_without_a_column_is_asked_by_older_statements():
    assert capture(FakeSql(failures=["42703", "42P01"]), 190000).startswith(b"snapshot\t160000\n")


def test_any_other_failure_is_the_callers():
    with pytest.raises(SqlError):
        capture(FakeSql(failures=["57P03"]), 180000)
    with pytest.raises(SqlError):
        capture(FakeSql(failures=["42883"] * 8), 170000)
