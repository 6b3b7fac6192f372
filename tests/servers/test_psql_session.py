"""A session that stays open tells by SQLSTATE what failed, and whether the connection is of any use afterwards."""

import pytest

from pgstrata.errors import SessionLostError, SqlError
from pgstrata.model.server import Address
from pgstrata.ports.session import Exchange
from pgstrata.servers.psql_session import PsqlSession


class Tools:
    process_environment, memory = {}, None

    @staticmethod
    def program(name):
        return name


class Psql:
    """Says these words one after the other; the first ones while it connects."""

    pid = 4711

    def __init__(self, *said):
        self.said, self.closed, self.patience, self.asked = list(said), False, [], []

    def __call__(self, command):
        return self

    def exchange(self, words, mark, *, timeout):
        self.asked.append(words.decode())
        self.patience.append(timeout)
        output, complaints, ended = self.said.pop(0)
        return Exchange(output=output.encode(), complaints=complaints.encode(), ended=ended)

    def close(self):
        self.closed = True


CONNECTED = ("1\n", "00000\n", False)


def session(*said, host="db1"):
    psql = Psql(*said)
    return psql, PsqlSession(psql, Tools(), Address(host=host, port=5432, user="watcher", database="shop"), "@")


def test_rows_come_without_what_psql_says_of_them():
    psql, opened = session(CONNECTED, ("a\tb\n", "00000\n", False))
    assert opened.rows("SELECT 1;") == b"a\tb\n"
    assert psql.asked[1] == "SELECT 1\n;\n\\warn :SQLSTATE\n\\warn @2\n"


def test_a_text_of_strangers_is_no_command_and_its_error_is_told():
    text = "SELECT $pgstrata0$ \\! touch x :HOST"
    failed = ("", "ERROR:  42501: permission denied for table stock\n\n", False)
    psql, opened = session(CONNECTED, ("a\n", "00000\n", False), failed)
    assert opened.rows_of_text(text) == b"a\n"
    assert psql.asked[1] == (f"SELECT $pgstrata1${text}$pgstrata1$ AS pgstrata \\gexec\n\\warn :SQLSTATE\n\\warn @2\n")
    with pytest.raises(SqlError, match="permission denied for table stock") as caught:
        opened.rows_of_text("SELECT 1")
    assert caught.value.sqlstate == "42501"


def test_a_notice_before_an_error_of_a_text_does_not_hide_it():
    said = "NOTICE:  00000: planned\nWARNING:  01000: slowly\nERROR:  42501: permission denied\n\n"
    _, opened = session(CONNECTED, ("", said, False))
    with pytest.raises(SqlError) as found:
        opened.rows_of_text("SELECT 1")
    assert found.value.sqlstate == "42501"


def test_an_error_that_a_function_raises_does_not_end_the_connection_but_the_next_statement_may():
    raised = ("", "ERROR:  57P01: raised by a function\n\n", False)
    _, opened = session(CONNECTED, raised, ("", "ERROR:  57P01: terminating connection\n57P01\n", False))
    with pytest.raises(SqlError) as found:
        opened.rows_of_text("SELECT 1")
    assert not isinstance(found.value, SessionLostError)
    with pytest.raises(SessionLostError):
        opened.rows("ROLLBACK")


def test_nobody_can_guess_the_line_that_ends_an_answer():
    address, asked = Address(host="db1", port=5432, user="watcher", database="shop"), set()
    for _ in range(3):
        psql = Psql(CONNECTED)
        PsqlSession(psql, Tools(), address)
        asked |= set(psql.asked)
    assert len(asked) == 3


def test_a_warning_while_it_connects_is_no_failure():
    said = 'WARNING:  01000: database "shop" has a collation version mismatch\n00000\n'
    _, opened = session(("1\n", said, False), ("2\n", "00000\n", False))
    assert opened.rows("SELECT 2") == b"2\n"


@pytest.mark.parametrize(
    "said",
    [
        "psql:<stdin>:4: ERROR:  42P01: relation does not exist\n42P01\n",
        'psql:<stdin>:4: FEHLER:  42P01: Relation "x" existiert nicht\n42P01\n',
    ],
)
def test_an_error_in_any_language_is_one(said):
    _, opened = session(CONNECTED, ("", said, False), ("3\n", "00000\n", False))
    with pytest.raises(SqlError) as found:
        opened.rows("SELECT 1")
    assert found.value.sqlstate == "42P01"
    assert opened.rows("SELECT 3") == b"3\n"


def test_a_notice_that_speaks_of_an_error_is_none():
    _, opened = session(CONNECTED, ("1\n", "NOTICE:  00000: last ERROR: none\n00000\n", False))
    assert opened.rows("SELECT 1") == b"1\n"


@pytest.mark.parametrize(
    ("said", "state", "ended"),
    [
        ("FATAL:  57P01: terminating connection due to administrator command\n", "", True),
        ("ERROR:  08006: server conn crashed?\n", "08006\n", False),
        ("ERROR:  57P02: terminating connection because of crash\n", "57P02\n", False),
        ("", "", True),
    ],
)
def test_an_end_of_the_connection_is_told_from_an_error_of_a_statement(said, state, ended):
    _, opened = session(CONNECTED, ("", said + state, ended))
    with pytest.raises(SessionLostError) as found:
        opened.rows("SELECT 1")
    assert found.value.what


def test_a_full_disk_of_the_server_is_an_error_of_that_statement():
    said = "ERROR:  53100: could not write to file: No space left on device\n53100\n"
    _, opened = session(CONNECTED, ("", said, False))
    with pytest.raises(SqlError) as found:
        opened.rows("SELECT 1")
    assert found.value.sqlstate == "53100"


@pytest.mark.parametrize(
    ("said", "remedy"),
    [
        ("psql: error: connection failed: FATAL:  sorry, too many clients already\n", "max_connections"),
        ("psql: error: FATAL:  remaining connection slots are reserved for roles with …\n", "max_connections"),
        ('psql: error: FATAL:  password authentication failed for user "watcher"\n', "PGPASSWORD"),
        ("psql: error: connection refused\n", "check that the server runs"),
    ],
)
def test_who_cannot_connect_is_told_what_to_do(said, remedy):
    psql = Psql(("", said, True))
    with pytest.raises(SqlError) as found:
        PsqlSession(psql, Tools(), Address(host="db1", port=5432, user="watcher", database="shop"))
    assert remedy in found.value.remedy
    assert psql.closed


def test_several_hosts_are_waited_for_one_after_the_other():
    assert session(CONNECTED, host="db1,db2,db3")[0].patience == [60.0]
    assert session(CONNECTED)[0].patience == [20.0]


def test_a_psql_that_cannot_be_started_is_no_traceback():
    def start(command):
        raise OSError(11, "Resource temporarily unavailable")

    with pytest.raises(SqlError, match="psql cannot be started: Resource temporarily unavailable"):
        PsqlSession(start, Tools(), Address(host="db1", port=5432, user="watcher", database="shop"))
