"""A private server in a temporary folder, with the tables of a small shop, and sessions that do something to it."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from incidents.ledger import Ledger

from pgstrata.app.machine import libpq_variables, open_machine
from pgstrata.app.places import find_server_user
from pgstrata.model.server import Build

PREFIX: Final = "pgsi-"
SHOP: Final = "shop"
_OPTIONS: Final = {
    "listen_addresses": "",
    "shared_preload_libraries": "pg_stat_statements",
    "shared_buffers": "32MB",
    "max_connections": "120",
    "max_parallel_workers_per_gather": "0",
    "max_wal_size": "2GB",
    "checkpoint_timeout": "5min",
    "track_io_timing": "on",
    "jit": "off",
}
_TABLES: Final = """
CREATE EXTENSION pg_stat_statements;
CREATE TABLE accounts (id int PRIMARY KEY, balance int NOT NULL, filler char(84) NOT NULL DEFAULT '');
INSERT INTO accounts SELECT n, 0 FROM generate_series(1, 100000) AS n;
CREATE TABLE payments (account int, amount int, at timestamptz DEFAULT now());
CREATE TABLE orders (id int PRIMARY KEY, customer int NOT NULL, pieces int NOT NULL, note text);
INSERT INTO orders SELECT n, hashint4(n) % 4000, 1, repeat('x', 40) FROM generate_series(1, 100000) AS n;
CREATE INDEX orders_customer ON orders (customer);
CREATE TABLE tickets (id int PRIMARY KEY, queue int NOT NULL, opened int NOT NULL, true_queue int NOT NULL)
    WITH (autovacuum_enabled = off);
INSERT INTO tickets SELECT n, n % 4000, n, n % 4000 FROM generate_series(1, 32000) AS n;
CREATE INDEX tickets_queue ON tickets (queue);
CREATE INDEX tickets_opened ON tickets (opened);
CREATE TABLE stock (item int PRIMARY KEY, pieces int NOT NULL) WITH (fillfactor = 30);
INSERT INTO stock SELECT n, 1000 FROM generate_series(1, 200) AS n;
CREATE TABLE counters (shard int, n int) WITH (fillfactor = 30);
INSERT INTO counters SELECT s, 0 FROM generate_series(0, 15) AS s, generate_series(1, 250);
CREATE INDEX counters_shard ON counters (shard);
CREATE TABLE articles (id int PRIMARY KEY, note text NOT NULL);
INSERT INTO articles SELECT n, repeat(md5(n::text), 9) FROM generate_series(1, 250000) AS n;
CREATE TABLE working_set (span int NOT NULL);
INSERT INTO working_set VALUES (4000);
CREATE TABLE import (id int, note text);
VACUUM ANALYZE;
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A running server: build, folder, environment, the process that all others of it are children of, and a ledger."""

    build: Build
    folder: Path
    environ: Mapping[str, str]
    pid: int
    ledger: Ledger

    @property
    def dsn(self) -> str:
        return f"host={self.folder} port=5432 user=boss dbname=postgres"

    def ask(self, script: str) -> str:
        """What a script prints, unaligned.

        Raises: subprocess.CalledProcessError: it failed.
        """
        words = [self.build.program("psql"), "-X", "-q", "-At", "-v", "ON_ERROR_STOP=1", "-d", self.dsn, "-f", "-"]
        done = subprocess.run(words, input=script, text=True, capture_output=True, check=True, env=self.named("setup"))
        return done.stdout.strip()

    def named(self, application: str) -> Mapping[str, str]:
        """The environment of a client of that name."""
        return {**self.environ, "PGAPPNAME": application}

    def start(self, words: list[str], application: str, log: Path | None = None) -> subprocess.Popen[bytes]:
        """A client that the ledger knows; its output goes to a file."""
        with (log or Path(os.devnull)).open("ab") as out:
            child = subprocess.Popen(
                words, env=self.named(application), cwd=self.folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                start_new_session=True,
            )  # fmt: skip
        self.ledger.process(child.pid)
        return child

    def processes(self) -> list[int]:
        """The server's first process and all its children."""
        words = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        return [self.pid, *map(int, words)]


class Session:
    """A session of one application that lasts for several scripts."""

    def __init__(self, site: Site, application: str) -> None:
        words = [site.build.program("psql"), "-X", "-q", "-At", "-d", site.dsn]
        self._child = subprocess.Popen(
            words, env=site.named(application), text=True, bufsize=1, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        site.ledger.process(self._child.pid)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._child.kill()
        self._child.communicate()

    def send(self, script: str) -> None:
        """Begin it; `wait` waits for its end."""
        assert self._child.stdin is not None
        self._child.stdin.write(f"{script}\n\\echo done\n")
        self._child.stdin.flush()

    def wait(self) -> None:
        """Raises: EOFError: the session has ended."""
        assert self._child.stdout is not None
        while (line := self._child.stdout.readline()) != "done\n":
            if not line:
                raise EOFError("a session of the benchmark was ended")

    def run(self, script: str) -> None:
        self.send(script)
        self.wait()


@contextmanager
def private_server(ledger: Ledger) -> Iterator[Site]:
    """Started with its tables as the user that pgstrata's servers run as, on disk; what ends it is the ledger."""
    with open_machine(lambda text: print(f"    {text}", flush=True)) as machine:
        (build,) = machine.servers.fetch(("embedded",))
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir="/var/tmp"))
    ledger.folder(folder)
    user = find_server_user()
    if user is not None:
        shutil.chown(folder, user)
        folder.chmod(0o711)
    hidden = libpq_variables(os.environ)
    environ = {name: text for name, text in os.environ.items() if name not in hidden} | {**build.process_environment}
    data = folder / "data"
    words = [build.program("initdb"), "-D", str(data), "-U", "boss", "-A", "trust", "--no-sync"]
    _as_user(words, user, environ)
    options = {**_OPTIONS, "unix_socket_directories": str(folder), "port": "5432"}
    given = [word for name, text in options.items() for word in ("-c", f"{name}={text}")]
    with (folder / "log").open("wb") as log:
        child = subprocess.Popen(
            [build.program("postgres"), "-D", str(data), *given],
            user=user, group=pwd.getpwnam(user).pw_gid if user else None, extra_groups=() if user else None,
            env=environ, cwd="/", stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    ledger.process(child.pid, signal.SIGQUIT)
    site = Site(build=build, folder=folder, environ=environ, pid=child.pid, ledger=ledger)
    try:
        _await(site)
        site.ask(_TABLES)
        yield site
    finally:
        child.send_signal(signal.SIGQUIT)
        with suppress(subprocess.TimeoutExpired):
            child.wait(20)


def _as_user(words: list[str], user: str | None, environ: Mapping[str, str]) -> None:
    group = pwd.getpwnam(user).pw_gid if user else None
    subprocess.run(
        words, check=True, user=user, group=group, extra_groups=() if user else None, env=environ, cwd="/",
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def _await(site: Site) -> None:
    until = time.monotonic() + 60
    while True:
        try:
            site.ask("SELECT 1")
        except subprocess.CalledProcessError:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)
        else:
            return
