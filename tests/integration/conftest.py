"""Real servers for whole experiments: binaries from the user's cache, data in a folder that goes away."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

import brisk
import guard_book
import program
from foreign_server import foreign_server
from working_folder import working_folder

READING = ("show", "plan", "reparse", "report", "gate", "explain", "window")


@dataclass
class Sandbox:
    """A place for experiments: `pgstrata` runs the program as a user would, what only reads in this process."""

    root: Path
    environ: dict

    def file(self, text, name="experiment.toml"):
        path = self.root / name
        path.write_text(text)
        return path

    def command(self, *arguments):
        return [sys.executable, brisk.__file__, *map(str, arguments)]

    def pgstrata(self, *arguments, timeout=None, environ=None, real=False):
        """The program, ended; a `real` process of its own, too, wherever it has a time limit or does not only read."""
        if arguments[0] in READING and timeout is None and not real:
            return program.run_here(self.root, self.environ | (environ or {}), *arguments)
        return subprocess.run(
            self.command(*arguments),
            cwd=self.root,
            capture_output=True,
            text=True,
            timeout=timeout or 240,
            env={**self.environ, **(environ or {})},
        )

    def start(self, *arguments):
        return subprocess.Popen(
            self.command(*arguments),
            cwd=self.root,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self.environ,
            start_new_session=True,
        )

    def processes(self):
        """Processes whose command line names this sandbox's data: servers that still run."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    words = (entry / "cmdline").read_bytes()
                except OSError:
                    continue
                if f"{self.root}/data/".encode() in words and b"postgres" in words.split(b"\0")[0]:
                    found.append(int(entry.name))
        return found

    def wait_for_silence(self, seconds=20):
        deadline = time.monotonic() + seconds
        while self.processes() and time.monotonic() < deadline:
            time.sleep(0.1)
        return self.processes()

    def clones(self):
        return list((self.root / "data" / "clones").glob("*/*"))

    def records(self, study):
        """run.json of every committed run, by identity."""
        return {
            "/".join(path.parts[-4:-1]): json.loads(path.read_text())
            for path in Path(study).glob("evidence/b*/*/*/run.json")
        }


@pytest.fixture(scope="session")
def shared_root():
    with working_folder() as root:
        yield root


@pytest.fixture(scope="session")
def shared_sandbox(shared_root):
    return Sandbox(
        root=shared_root,
        environ={
            **os.environ,
            "PGSTRATA_DATA": str(shared_root / "data"),
            "PGSTRATA_STATE": str(shared_root / "state"),
        },
    )


@pytest.fixture
def sandbox(shared_sandbox):
    yield shared_sandbox
    for leftover in shared_sandbox.root.glob("study*"):
        shutil.rmtree(leftover)


@pytest.fixture
def observed(request):
    """Tells what a guard said; see `guard_book`."""
    return partial(guard_book.observe, request.node.nodeid)


@pytest.fixture(scope="session")
def running_server(shared_root):
    """A server that is not ours to start or stop: its conninfo (with a password), and a way to ask it."""
    with foreign_server(shared_root / "foreign", port=15431) as server:
        yield server


@pytest.fixture(scope="session")
def reached_server(shared_root):
    """Another one, which is reached by TCP and TLS too and keeps every statement and connection in its log."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = "-c ssl=on -c log_statement=all -c log_connections=on"
    where = {"port": port, "listen": "127.0.0.1,::1", "options": options, "level": "18"}
    with foreign_server(shared_root / "reached", **where) as server:
        yield server


@pytest.fixture(scope="session")
def counting_server(shared_root):
    """Another one, which counts statements."""
    options = "-c shared_preload_libraries=pg_stat_statements"
    with foreign_server(shared_root / "counting", port=15432, options=options) as server:
        yield server
