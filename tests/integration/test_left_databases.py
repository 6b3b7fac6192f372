"""What a killed pgstrata left on a running server is dropped by the next one, and nothing else is.

Databases of other roles are not even entered, for what runs in them is those roles' choice.
"""

from __future__ import annotations

import signal
import subprocess
import time
from contextlib import closing
from dataclasses import replace

import pytest

from pgstrata.datasets.databases import DatabaseDatasets, observe_coordinator
from pgstrata.datasets.marker import observe_owner
from pgstrata.errors import HostNotFitError
from pgstrata.hosts.local import LocalHost
from pgstrata.model.experiment import ServerKind, ServerSpec
from pgstrata.ports.server import Clone, Dataset
from pgstrata.servers.psql import PsqlSql
from pgstrata.servers.supply import address_of

pytestmark = [pytest.mark.server, pytest.mark.timeout(180)]

EXPERIMENT = """
question = "?"
blocks = 1
controls = ["same"]
[common]
server = "dsn:{dsn}"
[[cells]]
workload = "select-only"
scale = {scale}
clients = 1
rate = 50
run = "1s"
warmup = "0s"
"""
MARKER = "CREATE TABLE pgstrata_marker (note text)"


def ask(server, statement, database="postgres"):
    words = [server["psql"], "-XAtq", "-v", "ON_ERROR_STOP=1", "-c", statement, f"{server['dsn']} dbname={database}"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()


def databases(server):
    return set(ask(server, "SELECT datname FROM pg_database WHERE datname LIKE 'pgstrata%'"))


@pytest.fixture
def server(running_server):
    before = databases(running_server)
    yield running_server
    for name in databases(running_server) - before:
        ask(running_server, f"DROP DATABASE {name}")


def test_what_kills_left_is_dropped_by_the_next_run(sandbox, server):
    """Killed while data are built, and while a clone is there; both times the server completes what it was told."""
    study = sandbox.root / "study-left"
    file = sandbox.file(EXPERIMENT.format(dsn=server["dsn"], scale=3), "left.toml")
    left = set()
    for kind in ("new", "run"):
        process = sandbox.start("run", file, "--study", study)
        try:
            while not (made := {name for name in databases(server) - left if f"_{kind}_" in name}):
                assert process.poll() is None, process.stdout.read()
                time.sleep(0.01)
        finally:
            process.send_signal(signal.SIGKILL)
            process.communicate()
        left |= made
        assert left & databases(server) >= made
        sandbox.wait_for_silence()
    done = sandbox.pgstrata("run", file, "--study", study)
    assert done.returncode == 0, done.stderr
    assert [name for name in databases(server) if "_new_" in name or "_run_" in name] == []
    assert f"removed what a killed pgstrata left: database {min(made)}" in done.stdout + done.stderr


ORDINARY = """
question = "?"
blocks = 1
controls = ["same"]
[common]
server = "dsn:{dsn}"
[[cells]]
workload = "simple-update"
scale = 7
clients = 1
rate = 50
run = "1s"
warmup = "0s"
"""
TAKE_OVER = "LANGUAGE plpgsql AS $$BEGIN ALTER ROLE mallory SUPERUSER; {} END$$;"
PGBENCH_AND_TRIGGER = f"""
CREATE TABLE pgstrata_marker (note text);
CREATE TABLE pgbench_branches AS SELECT 1 AS bid, 0 AS bbalance;
CREATE TABLE pgbench_tellers AS SELECT tid, 1 AS bid, 0 AS tbalance FROM generate_series(1, 10) tid;
CREATE TABLE pgbench_accounts AS SELECT aid, 1 AS bid, 0 AS abalance FROM generate_series(1, 100000) aid;
ALTER TABLE pgbench_accounts ADD PRIMARY KEY (aid);
CREATE TABLE pgbench_history (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22));
CREATE FUNCTION f() RETURNS trigger {TAKE_OVER.format("RETURN new;")}
CREATE TRIGGER t BEFORE UPDATE ON pgbench_accounts FOR EACH ROW EXECUTE PROCEDURE f();
"""
CATALOGUE_OF_ITS_OWN = f"""
CREATE TABLE pgstrata_marker (note text);
CREATE SCHEMA evil;
CREATE FUNCTION evil.f() RETURNS text {TAKE_OVER.format("RETURN 'pgstrata_marker';")}
CREATE VIEW evil.pg_class AS SELECT evil.f() AS relname, 'r' AS relkind, 1 AS oid;
"""


@pytest.fixture
def mallory(server):
    """A role that may create databases and nothing else; gives a function that fills one of its own by a script."""
    ask(server, "CREATE ROLE mallory LOGIN CREATEDB PASSWORD 'm'")
    before = databases(server)

    def plant(database, script, settings=""):
        own = server | {"dsn": server["dsn"].replace("user=boss password=canary-pw-7391", "user=mallory password=m")}
        ask(own, f"CREATE DATABASE {database}")
        ask(own, script, database)
        if settings:
            ask(own, f"ALTER DATABASE {database} SET {settings}")

    yield plant
    for name in databases(server) - before:
        ask(server, f"DROP DATABASE {name}")
    ask(server, "DROP ROLE mallory")


def took_over(server):
    return ask(server, "SELECT rolsuper FROM pg_roles WHERE rolname = 'mallory'") != ["f"]


def test_a_dataset_of_another_role_is_not_entered_whatever_is_in_it(sandbox, server, mallory):
    """The role that pgstrata connects as is a superuser: a trigger that it fires may do everything."""
    mallory("pgstrata_pgbench_s7_plain", PGBENCH_AND_TRIGGER)
    file = sandbox.file(ORDINARY.format(dsn=server["dsn"]), "ordinary.toml")
    done = sandbox.pgstrata("run", file, "--study", sandbox.root / "study-mallory")
    assert not took_over(server)
    assert done.returncode == 4, done.stdout + done.stderr
    assert "database pgstrata_pgbench_s7_plain" in done.stderr
    assert "it belongs to the role mallory, not to the one that pgstrata connects as: it is not touched" in done.stderr
    assert "-> rename or drop it yourself, or let pgstrata connect as mallory" in done.stderr


def test_nobody_else_can_make_functions_where_pgstrata_would_call_them(sandbox, server, mallory):
    """As on servers before 15, where the schema public is open to everybody: pg_prewarm would be called there."""
    ask(server, "GRANT CREATE ON SCHEMA public TO PUBLIC", "template1")
    try:
        file = sandbox.file(ORDINARY.format(dsn=server["dsn"]), "ordinary.toml")
        done = sandbox.pgstrata("run", file, "--study", sandbox.root / "study-closed")
    finally:
        ask(server, "REVOKE CREATE ON SCHEMA public FROM PUBLIC", "template1")
    assert done.returncode == 0, done.stdout + done.stderr
    name = "pgstrata_pgbench_s7_plain"
    assert ask(server, "SELECT has_schema_privilege('mallory', 'public', 'CREATE')", name) == ["f"]
    assert ask(server, f"SELECT datconnlimit FROM pg_database WHERE datname = '{name}'") == ["-1"]


def test_a_role_that_may_create_databases_needs_no_other_right(sandbox, server, mallory):
    dsn = server["dsn"].replace("user=boss password=canary-pw-7391", "user=mallory password=m")
    file = sandbox.file(ORDINARY.format(dsn=dsn), "modest.toml")
    done = sandbox.pgstrata("run", file, "--study", sandbox.root / "study-modest")
    assert done.returncode == 0, done.stdout + done.stderr
    found = "SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = 'pgstrata_pgbench_s7_plain'"
    assert ask(server, found) == ["mallory"]
    assert not took_over(server)


def test_a_left_over_of_another_role_is_not_entered_by_the_sweep(server, datasets, mallory, monkeypatch):
    """Its views stand before the catalogues in the search path."""
    owner = observe_owner(datasets.host)
    with monkeypatch.context() as patching:
        patching.setattr("pgstrata.datasets.databases.observe_owner", lambda _: replace(owner, started=1))
        name = datasets._draw_name("run")
    mallory(name, CATALOGUE_OF_ITS_OWN, "search_path = evil, pg_catalog")
    (said,) = datasets.sweep()
    assert not took_over(server)
    assert said.startswith("left alone, because it belongs to the role mallory, not to the one that pgstrata connects")
    assert name in databases(server)


def test_a_clone_that_has_become_another_roles_is_not_dropped(server, datasets, mallory):
    name = datasets._draw_name("run")
    mallory(name, CATALOGUE_OF_ITS_OWN, "search_path = evil, pg_catalog")
    clone = Clone(
        dataset=Dataset(identity="d", location="d", bytes=0, seconds_building=0),
        location=name,
        database=name,
        folder="/none/clone",
    )
    with pytest.raises(HostNotFitError, match="it belongs to the role mallory"):
        datasets.discard(clone)
    assert not took_over(server)
    assert name in databases(server)


def leave_database(server, datasets, monkeypatch):
    """A marked database of a run whose pgstrata has ended."""
    owner = observe_owner(datasets.host)
    with monkeypatch.context() as patching:
        patching.setattr("pgstrata.datasets.databases.observe_owner", lambda _: replace(owner, started=1))
        name = datasets._draw_name("run")
    ask(server, f"CREATE DATABASE {name}")
    ask(server, MARKER, name)
    return name


def test_a_search_path_before_the_catalogues_is_passed_over_in_databases_of_our_own(server, datasets, monkeypatch):
    """The path of the database where pgstrata logs in, or of its role, is somebody else's choice."""
    name = leave_database(server, datasets, monkeypatch)
    for catalogue in ("pg_class", "pg_database"):
        ask(server, f"CREATE TABLE {catalogue} (none int)", name)
    ask(server, f"ALTER DATABASE {name} SET search_path = public, pg_catalog")
    log_in_there = replace(datasets, address=datasets.address.with_database(name))
    (said,) = log_in_there.sweep()
    assert (
        said
        == f"what a killed pgstrata left cannot be removed: database {name}: cannot drop the currently open database"
    )
    assert datasets.sweep() == (f"removed what a killed pgstrata left: database {name}",)


@pytest.fixture
def datasets(server, tmp_path):
    from pgstrata.app.machine import open_machine

    with open_machine(print) as machine:
        tools = machine.servers.resolve(ServerSpec(kind=ServerKind.EMBEDDED))
    with closing(LocalHost()) as host:
        yield DatabaseDatasets(
            host=host, sql=PsqlSql(host, tools), tools=tools, workloads={}, recipe=None, clock=None, scratch="/none",
            address=address_of(ServerSpec(kind=ServerKind.DSN, value=server["dsn"]), {}),
            coordinator=observe_coordinator(host, str(tmp_path)),
        )  # fmt: skip


def test_only_what_is_ours_and_of_an_ended_process_of_this_machine_is_dropped(server, datasets, tmp_path, monkeypatch):
    living = datasets._draw_name("run")
    elsewhere = replace(datasets, coordinator="0" * 8)
    host, owner = datasets.host, observe_owner(datasets.host)
    another = str(tmp_path / "another")
    host.make_folder(another)
    assert observe_coordinator(host, another) != datasets.coordinator == observe_coordinator(host, str(tmp_path))
    names = {}
    with monkeypatch.context() as patching:
        patching.setattr("pgstrata.datasets.databases.observe_owner", lambda _: replace(owner, started=1))
        for kind, of in (("marked", datasets), ("empty", datasets), ("foreign", datasets), ("elsewhere", elsewhere)):
            names[kind] = of._draw_name("new")
        patching.setattr("pgstrata.datasets.databases.observe_owner", lambda _: replace(owner, boot="earlier"))
        names["rebooted"] = datasets._draw_name("run")
    names |= {"living": living, "user": "pgstrata_run_" + "0" * 12}
    for kind, name in names.items():
        ask(server, f"CREATE DATABASE {name}")
        if kind != "empty":
            ask(server, "CREATE TABLE precious ()" if kind == "foreign" else MARKER, name)
    said = "\n".join(datasets.sweep())
    there = databases(server)
    assert {kind for kind, name in names.items() if name not in there} == {"marked", "empty", "rebooted"}
    assert f"left alone, because it has no table pgstrata_marker: database {names['foreign']}" in said
    assert all((name in said) == (kind in {"marked", "empty", "rebooted", "foreign"}) for kind, name in names.items())


def test_what_is_in_use_is_named_and_left_for_the_next_time(server, datasets, monkeypatch):
    name = leave_database(server, datasets, monkeypatch)
    ask(server, f"ALTER DATABASE {name} IS_TEMPLATE true")
    (said,) = datasets.sweep()
    assert said.startswith(f"what a killed pgstrata left cannot be removed: database {name}: ")
    ask(server, f"ALTER DATABASE {name} IS_TEMPLATE false")
    assert datasets.sweep() == (f"removed what a killed pgstrata left: database {name}",)
