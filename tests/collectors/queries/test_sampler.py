from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from pgstrata.collectors.queries.sampler import QueriesCollector, Use, use_of_extension
from pgstrata.collectors.statements import statements_for
from pgstrata.errors import SqlError
from pgstrata.model.experiment import Environment, ServerKind
from pgstrata.ports.server import QueryResult

ROWS = QueryResult(columns=("id", "query"), rows=(("7", "SELECT $1"),))


@dataclass
class FakeSql:
    schema: str = "public"
    failures: list = field(default_factory=list)
    asked: list = field(default_factory=list)

    def query(self, address, statement):
        self.asked.append(statement)
        if "pg_extension" in statement:
            return QueryResult(columns=("schema",), rows=((self.schema,),) if self.schema else ())
        if self.failures:
            raise SqlError("no", sqlstate=self.failures.pop(0))
        return ROWS

    def execute(self, address, script):
        self.asked.append(script)
        if self.failures:
            raise SqlError("no", sqlstate=self.failures.pop(0))


def subject(sql, kind=ServerKind.CATALOGUE, version=180000):
    environment = SimpleNamespace(server=SimpleNamespace(kind=kind))
    build = SimpleNamespace(version=SimpleNamespace(number=version))
    return SimpleNamespace(sql=sql, server=SimpleNamespace(environment=environment, build=build, address="there"))


def environment(libraries, kind=ServerKind.CATALOGUE):
    settings = {"shared_preload_libraries": libraries}
    return Environment(name="a", levels=(), server=SimpleNamespace(kind=kind), settings=settings)


def experiment(*environments, diagnosis=True, query_text=True):
    return SimpleNamespace(environments=environments, diagnosis=diagnosis, query_text=query_text)


def test_nothing_is_asked_of_servers_of_our_own_unless_all_of_them_load_it():
    for libraries, own in (
        (("pg_stat_statements", "auto_explain, '$libdir/pg_stat_statements'"), True),
        (("pg_stat_statements", ""), False),
        (("", ""), False),
        (("pg_stat_statements_x",), False),
    ):
        assert use_of_extension(experiment(*map(environment, libraries))) == Use(own=own, running=True)
    assert use_of_extension(experiment(environment("pg_stat_statements"), diagnosis=False)) == Use()
    assert use_of_extension(experiment(environment("pg_stat_statements"), query_text=False)) == Use()
    sql = FakeSql()
    collector = QueriesCollector(Use(own=False, running=True))
    collector.prepare(subject(sql))
    assert collector.capture(subject(sql)) == b""
    assert sql.asked == []


def test_a_capture_is_a_table_with_the_names_of_its_columns():
    sql = FakeSql(schema='"my schema"')
    assert QueriesCollector(Use(own=True)).capture(subject(sql)) == b"id\tquery\n7\tSELECT $1\n"
    assert 'FROM "my schema".pg_stat_statements s' in sql.asked[-1]
    assert "@" not in sql.asked[-1]


def test_a_running_server_without_the_extension_is_left_alone():
    sql = FakeSql(schema="")
    assert QueriesCollector(Use(running=True)).capture(subject(sql, ServerKind.DSN)) == b""


def test_an_older_extension_is_asked_as_an_older_server():
    sql = FakeSql(failures=["42703", "42P01"])
    assert QueriesCollector(Use(own=True)).capture(subject(sql)).startswith(b"id\t")
    assert "jit_functions, NULL::int" in sql.asked[-1]


@pytest.mark.parametrize("state", ["55000", "42501"])
def test_where_it_is_not_loaded_or_not_allowed_nothing_is_captured_and_nothing_fails(state):
    assert QueriesCollector(Use(own=True)).capture(subject(FakeSql(failures=[state]))) == b""
    QueriesCollector(Use(own=True)).prepare(subject(FakeSql(failures=[state])))


def test_every_version_asks_for_the_same_columns():
    def known(version):
        return [text for _, text in statements_for("pgstrata.collectors.queries", "columns", version)]

    assert all("reset" in text and "AS since" in text and "deallocations" in text for text in known(10**6))
    assert [len(known(version)) for version in (10**6, 130000, 90500)] == [5, 2, 1]
