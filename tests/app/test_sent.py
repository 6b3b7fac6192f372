"""Servers for another machine, without one: the far side is a second transport to this one, and what is sent is sent."""

import os
from dataclasses import replace
from types import SimpleNamespace

import pytest

from pgstrata.app.machine import open_machine
from pgstrata.app.sent import SentServers
from pgstrata.errors import HostNotFitError, UsageError
from pgstrata.experiment.servers import parse_server
from pgstrata.hosts.local import LocalHost
from pgstrata.model.experiment import ServerKind
from pgstrata.servers.inspect import Inspector
from pgstrata.servers.packages import Packages
from pgstrata.servers.shelf import ServerSite

pytestmark = pytest.mark.server


class Transport(LocalHost):
    """A transport as that of ssh, to this machine."""

    def session(self, words):
        return words


@pytest.fixture
def sent(tmp_path, monkeypatch):
    """What sends servers of this machine's cache to a folder of the test's own."""
    for name in ("DATA", "STATE", "LOCK"):
        monkeypatch.setenv(f"PGSTRATA_{name}", str(tmp_path / name.lower()))
    with open_machine(lambda _: None) as machine:
        transport = Transport()
        site = ServerSite(here=machine.here, host=transport, cache=str(tmp_path / "known"), note=lambda _: None)
        packages = Packages(site=site, bring=False)
        yield SentServers(
            servers=machine.servers,
            transport=transport,
            machine=os.uname().machine,
            folder=str(tmp_path / "there"),
            inspector=Inspector(packages=packages),
        )
        transport.close()


def test_what_was_compiled_here_takes_its_libraries_from_where_it_lies_over_there(sent):
    ready = sent.servers.resolve(parse_server("embedded"))
    assert sent.send(ready).process_environment == {}
    compiled = replace(ready, spec=replace(ready.spec, kind=ServerKind.BUILD))
    there = sent.send(compiled)
    assert there.prefix.startswith(sent.folder)
    assert there.process_environment == {"LD_LIBRARY_PATH": f"{there.prefix}/lib"}


def test_a_prefix_that_is_not_over_there_is_refused_by_that_reason(sent):
    with pytest.raises(UsageError, match="no bin/postgres on that host"):
        sent.resolve(parse_server("prefix:/nowhere"))


def test_a_machine_of_another_architecture_gets_servers_and_tools_of_its_own(sent):
    ready, asked = sent.servers.resolve(parse_server("embedded")), []

    def fetch_for(spec, machine):
        asked.append((spec.text, machine))
        return ready.prefix, "supplier"

    servers = SimpleNamespace(fetch_for=fetch_for, site=sent.servers.site)
    foreign = replace(sent, machine="aarch64" if os.uname().machine == "x86_64" else "x86_64", servers=servers)
    for build in (foreign.resolve(parse_server("18")), foreign.client_tools()):
        assert build.prefix.startswith(sent.folder)
        assert build.digest == ready.digest
    assert asked == [("18", foreign.machine), ("embedded", foreign.machine)]


@pytest.mark.parametrize("level", ["build:/src/postgresql"])
def test_what_is_built_here_is_nothing_for_another_architecture(sent, level):
    foreign = replace(sent, machine="riscv64")
    with pytest.raises(HostNotFitError, match="and that host is riscv64") as caught:
        foreign.resolve(parse_server(level))
    assert "prefix:DIR" in caught.value.remedy
    with pytest.raises(HostNotFitError, match="no ready-made servers for the architecture riscv64"):
        foreign.client_tools()
