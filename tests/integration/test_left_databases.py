"""What a killed pgstrata left on a running server is dropped by the next one, and nothing else is."""

from __future__ import annotations

import signal
import subprocess
import time
from contextlib import closing
from dataclasses import replace

import pytest

from pgstrata.datasets.databases import DatabaseDatasets, observe_coordinator
from pgstrata.datasets.marker import observe_owner
from pgstrata.hosts.local import LocalHost
from pgstrata.model.experiment import ServerKind, ServerSpec
from pgstrata.servers.psql import PsqlSql
from pgstrata.servers.running import address_of

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
    owner = observe_owner(datasets.host)
    with monkeypatch.context() as patching:
        patching.setattr("pgstrata.datasets.databases.observe_owner", lambda _: replace(owner, started=1))
        name = datasets._draw_name("run")
    ask(server, f"CREATE DATABASE {name}")
    ask(server, MARKER, name)
    ask(server, f"ALTER DATABASE {name} IS_TEMPLATE true")
    (said,) = datasets.sweep()
    assert said.startswith(f"what a killed pgstrata left cannot be removed: database {name}: ")
    ask(server, f"ALTER DATABASE {name} IS_TEMPLATE false")
    assert datasets.sweep() == (f"removed what a killed pgstrata left: database {name}",)
