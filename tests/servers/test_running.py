"""What a running server says of itself."""

import pytest

from pgstrata.experiment.servers import parse_server
from pgstrata.ports.server import QueryResult
from pgstrata.servers.supply import RunningSource

PLAIN = "PostgreSQL 9.6.10 on x86_64-pc-linux-gnu, compiled by gcc (Ubuntu 5.4.0) 5.4.0 20160609, 64-bit"
PRO = "PostgresPro 9.6.10.1 on x86_64-pc-linux-gnu, compiled by gcc (Ubuntu 5.4.0) 5.4.0 20160609, 64-bit"


class Answers:
    """A server that knows these functions without arguments."""

    def __init__(self, **functions):
        self.functions = functions

    def query(self, address, statement):
        name = statement.rpartition(".")[2]
        if name.endswith("()"):
            return QueryResult(columns=("said",), rows=((self.functions[name[:-2]],),))
        known = any(f"'{name}'" in statement for name in self.functions)
        return QueryResult(columns=("?column?",), rows=(("1",),) if known else ())


@pytest.mark.parametrize(
    ("functions", "fork"),
    [({"version": PLAIN}, ""), ({"version": PLAIN, "pgpro_version": PRO}, "Postgres Pro 9.6.10.1")],
)
def test_postgres_pro_is_told_from_the_postgresql_that_it_says_it_is(functions, fork):
    build = RunningSource(Answers(**functions), {}).resolve(parse_server("dsn:host=db1 dbname=shop"))
    assert (build.version.number, build.version.text, build.version.fork) == (90610, "9.6.10", fork)
    assert build.compiler == "gcc (Ubuntu 5.4.0) 5.4.0 20160609"
