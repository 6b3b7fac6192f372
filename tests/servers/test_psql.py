"""What psql complains of as an error with a remedy."""

import pytest

from pgstrata.errors import SqlError
from pgstrata.hosts.local import LocalHost
from pgstrata.model.server import Address
from pgstrata.ports.server import PartAnswer
from pgstrata.servers.psql import PsqlSql, find_error


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


def test_a_service_that_is_not_there_may_have_been_meant_as_a_machine(tmp_path):
    sql = PsqlSql(LocalHost(), Tools(tmp_path, 'psql: error: definition of service "db1" not found', 2))
    with pytest.raises(SqlError) as caught:
        sql.execute(Address(host="", port=0, user="", database="", parameters={"service": "db1"}), "SELECT 1")
    assert caught.value.where == "the service db1"
    assert caught.value.remedy.startswith("write host=NAME dbname=NAME")


class Psql(Tools):
    """A psql that answers a script as psql 18 does: a part with `bad` in it with an error, others with a row."""

    def __init__(self, folder):
        super().__init__(folder, "", 0)
        self._psql.write_text(
            "#!/bin/sh\nwhile IFS= read -r line; do case $line in\n"
            "*notice*) echo 'psql:<stdin>:1: NOTICE:  00000: ERROR:  42P01: not this one' >&2 ;;\n"
            "*bad*) echo 'psql:<stdin>:7: FEHLER:  42P01: Relation »t« existiert nicht' >&2\n"
            "  echo 'LINE 1: bad' >&2; echo 'psql:<stdin>:9: ERROR:  25P02: current transaction is aborted' >&2 ;;\n"
            "'\\echo '*) echo \"${line#* }\" ;;\n'\\warn '*) echo \"${line#* }\" >&2 ;;\n"
            '*) echo "said $line" ;; esac; done\n'
        )


def test_each_part_of_a_script_has_its_own_output_and_its_first_error(tmp_path):
    sql = PsqlSql(LocalHost(), Psql(tmp_path))
    found = sql.answers(Address(host="/run", port=1, user="u", database="d"), ["one\ntwo", "notice", "bad", "three"])
    assert found == (
        PartAnswer(output="said one\nsaid two\n"),
        PartAnswer(),
        PartAnswer(error="Relation »t« existiert nicht", sqlstate="42P01"),
        PartAnswer(output="said three\n"),
    )


def test_notices_and_warnings_are_no_errors():
    assert find_error("NOTICE:  00000: a\nWARNING:  01000: b\n") is None
    assert find_error("WARNING:  01000: b\nERREUR :  42501: droit refusé\n") == ("42501", "droit refusé")
