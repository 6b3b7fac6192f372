"""Real servers for layers: installed builds, and stopped clusters of them in a folder that goes away."""

import os
import platform
import pwd
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from fake_clock import FakeClock
from loop_devices import left_over
from pgstrata.errors import LevelNotTakenError
from pgstrata.hosts.local import LocalHost
from pgstrata.ledger.ledger import HostLedger
from pgstrata.model.experiment import ServerKind, ServerSpec
from pgstrata.ports.host import Command
from pgstrata.ports.server import Clone, Dataset
from pgstrata.servers.places import find_places, server_user
from pgstrata.servers.shelf import ServerSite
from pgstrata.servers.supply import Servers


def known(name):
    return name in {entry.pw_name for entry in pwd.getpwall()}


class DirectLedger:
    """Changes this machine and undoes it, without writing anything down (`ports.Ledger`)."""

    def __init__(self):
        self.host = LocalHost()
        self.open = []

    def change(self, change):
        before = self.host.run(Command(argv=change.read.argv)).text.strip()
        self.open.append((change, before))
        done = self.host.run(Command(argv=change.do.argv), check=False)
        if done.code:
            self.undo_to(len(self.open) - 1)
            raise LevelNotTakenError("it was refused", details=tuple(done.stderr.decode().splitlines()))
        return self.host.run(Command(argv=change.read.argv)).text.strip()

    def mark(self):
        return len(self.open)

    def undo_to(self, mark):
        while len(self.open) > mark:
            change, before = self.open.pop()
            for _ in range(2):  # a second time it does no harm
                self.host.run(Command(argv=change.undo.with_argument(before).argv))
            now = self.host.run(Command(argv=change.read.argv)).text.strip()
            assert now == before, f"{change.what} is {now}, it was {before}"


@pytest.fixture
def direct_ledger():
    """A ledger that really changes this machine; everything is undone at the end of the test."""
    ledger = DirectLedger()
    yield ledger
    ledger.undo_to(0)


@pytest.fixture(scope="session")
def server_host():
    """This machine as the user that servers run as."""
    host = LocalHost(user=server_user(os.getuid(), os.environ, known=known))
    yield host
    host.close()


@pytest.fixture(scope="session")
def servers(server_host):
    """Where builds come from."""
    places = find_places(os.environ, uid=os.getuid(), home=str(Path.home()), memory_backed=False)
    return Servers.make(
        ServerSite(here=LocalHost(), host=server_host, cache=places.cache, note=lambda line: None),
        machine=platform.machine(),
        python=sys.executable,
    )


@pytest.fixture(scope="session")
def resolve(servers):
    """A build by its level: embedded, or a major of the catalogue."""

    def resolve(level):
        kind = ServerKind.EMBEDDED if level == "embedded" else ServerKind.CATALOGUE
        return servers.resolve(ServerSpec(kind=kind, value="" if level == "embedded" else level))

    return resolve


@pytest.fixture(scope="session")
def server_folder(server_host):
    """A folder with a short name that belongs to the user of servers."""
    folder = Path(tempfile.mkdtemp(prefix="pgstrata-layers-", dir="/tmp"))
    if os.getuid() == 0:
        shutil.chown(folder, server_host.user)
    yield str(folder)
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def cluster(server_host, server_folder, resolve):
    """A build and a stopped cluster of it as a clone, made once for each level."""
    made = {}

    def make(level):
        if level not in made:
            build = resolve(level)
            folder = f"{server_folder}/{level}"
            server_host.make_folder(folder)
            argv = (
                build.program("initdb"),
                "-N",
                "-U",
                "pgstrata",
                "-A",
                "trust",
                "--locale=C",
                "-D",
                f"{folder}/data",
            )
            server_host.run(Command(argv=argv, environment=build.process_environment), timeout=120)
            conf = server_host.read(f"{folder}/data/postgresql.conf")
            server_host.write(f"{folder}/data/postgresql.conf", conf + b"\ninclude_if_exists = 'pgstrata.conf'\n")
            dataset = Dataset(identity=level, location=f"{folder}/data", bytes=0, seconds_building=0.0)
            made[level] = build, Clone(dataset=dataset, location=f"{folder}/data", database="postgres", folder=folder)
        return made[level]

    return make


@pytest.fixture
def ledger(tmp_path):
    """A ledger of this host with its entries in a folder of the test; everything is undone at its end."""
    host = LocalHost()
    ledger = HostLedger(host, (), str(tmp_path / "ledger"), FakeClock(), "study")
    yield ledger
    ledger.undo_to(0)
    host.close()


@pytest.fixture
def folder():
    """A folder for images, short-lived; every test that uses it must leave it empty."""
    path = Path(tempfile.mkdtemp(prefix="pgstrata-storage-", dir="/var/tmp"))
    path.chmod(0o755)
    yield str(path)
    left = left_over(str(path))
    for mount in reversed([line for line in left if isinstance(line, str)]):
        subprocess.run(["umount", mount.split()[4]], check=False)
    for loop in Path("/sys/block").glob("loop*/loop/backing_file"):
        if loop.read_text().startswith(str(path)):
            subprocess.run(["losetup", "--detach", f"/dev/{loop.parts[3]}"], check=False)
    shutil.rmtree(path)
    assert left == []


@pytest.fixture
def user():
    """The user of servers, without a server."""
    host = LocalHost(user="nobody") if os.getuid() == 0 else LocalHost()
    yield host
    host.close()
