"""Every sampler at work beside a real server."""

import os
import shutil
import subprocess
import tempfile
from dataclasses import replace
from types import SimpleNamespace

import pytest

from pgstrata.app.machine import open_machine
from pgstrata.app.wiring import make_samplers
from pgstrata.model.experiment import ServerKind, ServerSpec
from pgstrata.model.secret import Secret
from pgstrata.model.server import Address
from pgstrata.ports.collector import CaptureSubject
from pgstrata.ports.server import Clone, Dataset, RunningServer
from pgstrata.servers.psql import PsqlSql
from pgstrata.testing_samplers import SamplerConformance
from samplers import KNOWN

pytestmark = [pytest.mark.server, pytest.mark.timeout(120)]

BUSY = "DO $$ BEGIN FOR i IN 1..10000 LOOP PERFORM count(*) FROM generate_series(1, 3000); PERFORM pg_sleep(0.01); END LOOP; END $$"


@pytest.fixture(scope="module")
def subject(running_server):
    """The server that runs, with a session of the driver that is now busy and now not."""
    folder = str(running_server["folder"])
    address = Address(host=folder, port=15431, user="boss", database="postgres", password=Secret("canary-pw-7391"))
    argv = [running_server["psql"], "-X", "-q", "-d", running_server["dsn"], "-c", BUSY]
    busy = subprocess.Popen(argv, stderr=subprocess.DEVNULL, env={**os.environ, "PGAPPNAME": "pgbench"})
    try:
        with open_machine(print) as machine:
            build = machine.servers.resolve(ServerSpec(kind=ServerKind.EMBEDDED))
            dataset = Dataset(identity="data", location=folder, bytes=1, seconds_building=0.0)
            clone = Clone(dataset=dataset, location=folder, database="postgres", folder=folder)
            server = RunningServer(
                environment=SimpleNamespace(name="a"),
                build=build,
                clone=clone,
                address=address,
                postmaster_pid=running_server["pid"],
            )
            yield CaptureSubject(host=machine.here, sql=PsqlSql(machine.here, build), server=server)
    finally:
        busy.terminate()
        busy.wait()


@pytest.mark.parametrize("name", [name for name in KNOWN if name != "waits"])
class TestEverySampler(SamplerConformance):
    @pytest.fixture
    def sampler(self, name, subject):
        return next(sampler for sampler in make_samplers() if sampler.name == name)

    @pytest.fixture
    def folder(self):
        folder = tempfile.mkdtemp(prefix="pgstrata test ", dir="/tmp")
        yield folder
        shutil.rmtree(folder)

    @pytest.fixture
    def moments(self, name):
        return KNOWN[name].moments

    @pytest.fixture
    def period(self, name):
        return KNOWN[name].period

    @pytest.fixture
    def window(self, name):
        return KNOWN[name].window()


def test_a_server_without_a_column_that_the_statements_ask_for_ends_the_sampler_with_a_word(
    subject, running_server, tmp_path
):
    """As an older one than all files would: a view in its own schema stands for its pg_stat_activity."""
    view = "CREATE VIEW old.pg_stat_activity AS SELECT pid, datname, state, query FROM pg_catalog.pg_stat_activity"
    psql(running_server, "CREATE SCHEMA old", view)
    try:
        parameters = {"options": "-c search_path=old,pg_catalog"}
        server = replace(subject.server, address=replace(subject.server.address, parameters=parameters))
        sampler = next(sampler for sampler in make_samplers() if sampler.name == "sessions")
        sampling = sampler.start(replace(subject, server=server), str(tmp_path))
        assert sampling.process.wait(10.0).code != 0
    finally:
        psql(running_server, "DROP SCHEMA old CASCADE")
    assert b"does not exist" in sampling.host.read(sampling.errors)


def psql(server, *statements):
    words = (word for statement in statements for word in ("-c", statement))
    subprocess.run([server["psql"], "-X", "-q", "-d", server["dsn"], *words], check=True, capture_output=True)
