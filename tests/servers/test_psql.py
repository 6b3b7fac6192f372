"""What psql complains of as an error with a remedy."""

import pytest

from pgstrata.errors import SqlError
from pgstrata.hosts.local import LocalHost
from pgstrata.model.server import Address
from pgstrata.servers.psql import PsqlSql


class Tools:
    """An installation whose psql says that and ends with that code."""

    def __init__(self, folder, said, code):
        self.process_environment, self.memory = {}, None
        self._psql = folder / "psql"
        self._psql.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{said}\nEND\nexit {code}\n")
        self._psql.chmod(0o755)

    def program(self, _name):
        return str(self._psql)


@pytest.mark.parametrize(
    ("said", "what"),
    [
        (
            'psql: error: connection to server on socket "/run/.s" failed: No such file or directory\n\tIs the server up?',
            'connection to server on socket "/run/.s" failed: No such file or directory',
        ),
        (
            "server closed the connection unexpectedly\n\tThis probably means",
            "server closed the connection unexpectedly",
        ),
        ("psql: error: FATAL:  57P03: the database system is starting up", "the database system is starting up"),
    ],
)
def test_a_server_that_has_gone_is_named_with_what_to_do(tmp_path, said, what):
    host = LocalHost()
    sql = PsqlSql(host, Tools(tmp_path, said, 2))
    with pytest.raises(SqlError) as caught:
        sql.execute(Address(host="/run", port=1, user="u", database="d"), "SELECT 1")
    assert caught.value.what == what
    assert "check that the server runs" in caught.value.remedy


def test_a_database_that_is_not_there_is_a_question_of_its_name(tmp_path):
    sql = PsqlSql(LocalHost(), Tools(tmp_path, 'psql: error: FATAL:  3D000: database "nodb" does not exist', 2))
    with pytest.raises(SqlError) as caught:
        sql.execute(Address(host="/run", port=1, user="u", database="nodb"), "SELECT 1")
    assert caught.value.remedy.startswith("check the name of the database")
