import hashlib
from dataclasses import dataclass

import pytest

from driver_host import DriverHost
from pgstrata.drivers.sysbench import CAPABILITIES
from pgstrata.drivers.sysbench.driver import SysbenchDriver
from pgstrata.drivers.sysbench.loading import load_sysbench, verify_sysbench
from pgstrata.drivers.sysbench.program import find_sysbench
from pgstrata.errors import DiskFullError, HostNotFitError, ServerFailedError, UsageError
from pgstrata.model.experiment import Cell, Protocol, Script
from pgstrata.model.secret import Secret
from pgstrata.model.server import Address
from pgstrata.ports.driver import Load
from pgstrata.ports.host import Completed
from pgstrata.workloads import builtin_workloads

ADDRESS = Address(host="/run/s", port=5433, user="postgres", database="bench")
HELP = b"Compiled-in database drivers:\n  mysql - MySQL driver\n  pgsql - PostgreSQL driver\n"
EMPTY = "--db-driver=pgsql --pgsql-host= --pgsql-port= --pgsql-user= --pgsql-password="


CHECKOUT = (Script(file="tpcc.lua", text='require("tpcc_run")'), Script(file="tpcc_run.lua", text="-- run"))


def oltp(scale):
    return Cell(workload="oltp-read-only", scale=scale, clients=1, threads=1, driver="sysbench")


@dataclass
class FakeHost(DriverHost):
    """A machine with a sysbench, `found` there, that says `help` and loads with `loaded`."""

    name = "local"
    found: bytes = b"/usr/bin/sysbench\n"
    help: bytes = HELP
    loaded: Completed | None = None
    version: bytes = b"sysbench 1.0.20\n"

    def list_folder(self, path):
        return tuple(sorted(name.removeprefix(f"{path}/") for name in self.files if name.startswith(f"{path}/")))

    def read_files(self, paths):
        return {path: self.files[path] for path in paths if path in self.files}

    def run(self, command, *, timeout=600.0, check=True):
        self.ran.append(command)
        match command.argv:
            case ("sh", *_):
                return Completed(code=0 if self.found else 127, stdout=self.found, stderr=b"")
            case (_, "--help"):
                return Completed(code=0, stdout=self.help, stderr=b"")
            case ("nproc",):
                return Completed(code=0, stdout=b"2\n", stderr=b"")
            case (_, "--version"):
                return Completed(code=0, stdout=self.version, stderr=b"")
        return self.loaded or Completed(code=0, stdout=b"", stderr=b"")


def load(workload="oltp-read-only", address=ADDRESS, options=(), **changes):
    cell = Cell(**{"workload": workload, "scale": 3, "clients": 4, "threads": 4, "driver": "sysbench", **dict(options)})
    description = builtin_workloads()[workload]
    return Load(**{"cell": cell, "workload": description, "address": address, "seconds": 60.0, "seed": 42, **changes})


def started(given):
    host = FakeHost()
    SysbenchDriver(host).start(given, "/f")
    ((command, stdout, stderr),) = host.spawned
    assert (stdout, stderr) == ("/f/sysbench.out", "/f/sysbench.err")
    return command, host


def words(given):
    return " ".join(started(given)[0].argv)


class TestCommand:
    def test_names_everything_that_matters(self):
        assert words(load()) == (
            f"sysbench {EMPTY} --pgsql-db=bench --tables=3 --table-size=100000 --rand-type=uniform --threads=4 "
            "--rand-seed=42 --db-ps-mode=auto --histogram=on --percentile=99 --time=60 --report-interval=1 "
            "oltp_read_only run"
        )

    def test_leaves_host_user_and_password_to_libpq(self):
        address = Address(
            host="10.0.0.1", port=5433, user="me", database="bench", password=Secret("canary"),
            parameters={"sslmode": "require", "keepalives": "1"},
        )  # fmt: skip
        command, host = started(load(address=address))
        assert "canary" not in repr((command, host.files))
        assert command.password.reveal() == "canary"
        assert {"PGHOST": "10.0.0.1", "PGPORT": "5433", "PGUSER": "me", "PGSSLMODE": "require"}.items() <= (
            command.environment.items()
        )
        assert "--pgsql-db=dbname='bench' keepalives='1'" in " ".join(command.argv)

    def test_calls_its_sessions_by_its_name_unless_the_address_has_another(self):
        assert started(load())[0].environment["PGAPPNAME"] == "sysbench"
        named = Address(host="/s", port=1, user="u", database="b", parameters={"application_name": "mine"})
        assert started(load(address=named))[0].environment["PGAPPNAME"] == "mine"

    def test_takes_protocol_rate_and_access(self):
        options = {"protocol": Protocol.SIMPLE, "rate": 150.0, "options": {"access": "pareto"}}
        text = words(load(options=options))
        assert "--db-ps-mode=disable" in text
        assert "--rate=150 " in text
        assert "--rand-type=pareto" in text

    def test_refuses_a_rate_that_would_be_rounded(self):
        with pytest.raises(UsageError, match="whole numbers"):
            words(load(options={"rate": 1.5}))

    def test_rounds_the_duration_up_or_counts_transactions_of_all_clients(self):
        assert "--time=3 " in words(load(seconds=2.1))
        assert "--events=400 --time=0" in words(load(transactions=100))

    @pytest.mark.parametrize(("seed", "given"), [(0, 2**31 - 1), (1, 1), (2**31 - 1, 2**31 - 1), (2**31, 1)])
    def test_gives_seeds_that_sysbench_takes(self, seed, given):
        assert f"--rand-seed={given} " in words(load(seed=seed))

    def test_puts_words_of_layers_in_front(self):
        assert words(load(launch=("taskset", "-c", "1"))).startswith("taskset -c 1 sysbench ")

    def test_asks_as_little_as_possible_by_a_script_of_its_own(self):
        least = SysbenchDriver(FakeHost()).least_load(load(options={"rate": 10.0}))
        command, host = started(least)
        assert command.argv[-2:] == ("/f/least.lua", "run")
        assert b"SELECT 1" in host.files["/f/least.lua"]
        assert not [word for word in command.argv if word.startswith(("--table", "--rate"))]


def test_progress_is_read_from_where_it_was_left_and_only_whole_lines():
    host = FakeHost()
    line = b"[ 1s ] thds: 2 tps: 5.00 qps: 5.00 (r/w/o: 5.00/0.00/0.00) lat (ms,99%): 5.00 err/s: 0.00 reconn/s: 0.00\n"
    driver = SysbenchDriver(host)
    assert driver.progress("/f", 0) == ((), 0)
    host.files["/f/sysbench.out"] = line + b"[ 2s ] thds"
    (point,), offset = driver.progress("/f", 0)
    assert (point.time, point.tps, offset) == (1.0, 5.0, len(line))
    assert driver.progress("/f", offset) == ((), offset)


def test_everything_that_it_left_is_collected_as_it_is():
    host = FakeHost(files={"/f/sysbench.out": b"a", "/f/sysbench.err": b"", "/f/least.lua": b"b"})
    assert SysbenchDriver(host).collect("/f") == {"sysbench.out": b"a", "sysbench.err": b""}


def test_constants_of_a_statement_that_failed_are_not_kept():
    said = b"FATAL: PQexec() failed: 7 gone\nFATAL: failed query was: UPDATE sbtest2 SET k=k+1 WHERE id=49760\n[ 1s ] thds: 2\n"
    kept = SysbenchDriver(FakeHost(files={"/f/sysbench.out": said})).collect("/f")["sysbench.out"]
    assert b"49760" not in kept
    assert b"failed query was: UPDATE sbtest2" in kept
    assert kept.endswith(b"\n[ 1s ] thds: 2\n")


class TestScripts:
    def test_of_a_workload_are_written_beside_its_output_and_get_the_options_that_they_know(self):
        given = load("tpcc", options={"scale": 2, "options": {"access": "pareto"}})
        command, host = started(given)
        assert command.argv[-2:] == ("/f/tpcc.lua", "run")
        assert command.folder == "/f"
        assert b"function event()" in host.files["/f/tpcc.lua"]
        assert [word for word in command.argv if word.startswith(("--scale", "--access", "--statements", "--rand-type"))] == [
            "--scale=2", "--access=pareto",
        ]  # fmt: skip

    def test_that_are_not_there_for_these_options_are_refused(self):
        with pytest.raises(UsageError, match="nothing that sysbench could run"):
            words(load("tpcc", options={"options": {"statements": "server"}}))

    def test_of_a_checkout_are_written_as_they_are_and_run_by_a_script_that_counts(self):
        given = load("sysbench-tpcc", options={"checkout": CHECKOUT, "options": {"tables": "2"}})
        command, host = started(given)
        assert " --scale=3 --tables=2 --threads=4 " in " ".join(command.argv)
        assert command.argv[-2:] == ("/f/pgstrata_counting.lua", "run")
        assert command.folder == "/f"
        counting = host.files.pop("/f/pgstrata_counting.lua")
        assert b'\nrequire("tpcc")\n' in counting
        assert host.files == {"/f/tpcc.lua": b'require("tpcc_run")', "/f/tpcc_run.lua": b"-- run"}

    def test_of_a_checkout_give_way_to_the_least_load(self):
        least = SysbenchDriver(FakeHost()).least_load(load("sysbench-tpcc", options={"checkout": CHECKOUT}))
        command, host = started(least)
        assert command.argv[-2:] == ("/f/least.lua", "run")
        assert list(host.files) == ["/f/least.lua"]


class TestFacts:
    def test_are_the_version_and_the_digest_of_the_binary(self):
        facts = SysbenchDriver(FakeHost(files={"/usr/bin/sysbench": b"binary"})).facts()
        assert facts["version"] == "1.0.20"
        assert len(facts["sha256"]) == 64
        assert "lua_sha256" not in facts

    def test_tell_by_a_digest_which_of_its_own_scripts_there_are(self):
        binary = b"\0./?.lua;\0/usr/share/lua/5.1/?.lua;\0/usr/share/sysbench/?.lua;\0"
        files = {
            "/usr/bin/sysbench": binary,
            "/usr/share/sysbench/oltp_common.lua": b"common",
            "/usr/share/sysbench/oltp_read_only.lua": b"reads",
            "/usr/share/sysbench/bulk_insert.lua": b"another",
        }
        lines = "".join(
            f"{name} {hashlib.sha256(content).hexdigest()}\n"
            for name, content in (("oltp_common.lua", b"common"), ("oltp_read_only.lua", b"reads"))
        )
        facts = SysbenchDriver(FakeHost(files=files)).facts()
        assert facts["lua_sha256"] == hashlib.sha256(lines.encode()).hexdigest()


class TestFinding:
    def test_a_missing_one_is_an_error_that_says_what_to_install(self):
        with pytest.raises(HostNotFitError, match="not installed") as caught:
            find_sysbench(FakeHost(found=b""))
        assert "apt-get install sysbench" in caught.value.remedy

    @pytest.mark.parametrize("text", [b"", b"Compiled-in database drivers:\n  mysql - MySQL driver\n"])
    def test_one_without_postgresql_is_named(self, text):
        with pytest.raises(HostNotFitError, match="without its PostgreSQL driver") as caught:
            find_sysbench(FakeHost(help=text))
        assert "/usr/bin/sysbench" in caught.value.where

    def test_one_from_before_1_0_is_named_with_its_version(self):
        with pytest.raises(HostNotFitError, match=r"this sysbench is 0\.4\.12, whose scripts") as caught:
            find_sysbench(FakeHost(version=b"sysbench 0.4.12\n"))
        assert "1.0.20" in caught.value.remedy


class TestLoading:
    def test_makes_a_table_for_each_unit_of_scale_in_as_many_threads_as_there_are_cpus(self):
        host = FakeHost()
        load_sysbench(host, ADDRESS, oltp(3), "/d")
        text = " ".join(host.ran[-1].argv)
        assert text == (
            f"sysbench {EMPTY} --pgsql-db=bench --tables=3 --table-size=100000 --threads=2 --rand-seed=1 "
            "--rand-type=uniform oltp_read_write prepare"
        )
        load_sysbench(host, ADDRESS, oltp(1), "/d")
        assert "--threads=1" in host.ran[-1].argv
        assert not host.files

    def test_has_one_session_run_prepare_of_a_checkout_in_the_folder_of_its_files(self):
        host = FakeHost()
        cell = Cell(workload="sysbench-tpcc", scale=2, clients=1, threads=1, checkout=CHECKOUT, options={"tables": "3"})
        load_sysbench(host, ADDRESS, cell, "/d")
        assert " ".join(host.ran[-1].argv) == (
            f"sysbench {EMPTY} --pgsql-db=bench --scale=2 --tables=3 --threads=1 --rand-seed=1 --rand-type=uniform "
            "/d/tpcc.lua prepare"
        )
        assert host.ran[-1].folder == "/d"
        assert set(host.files) == {"/d/tpcc.lua", "/d/tpcc_run.lua"}

    @pytest.mark.parametrize(
        ("said", "kind"),
        [("could not extend file: No space left on device", DiskFullError), ("syntax error", ServerFailedError)],
    )
    def test_a_failure_has_what_was_said(self, said, kind):
        failed = Completed(code=1, stdout=f"Creating table 'sbtest1'...\nFATAL: {said}\n".encode(), stderr=b"")
        with pytest.raises(kind) as caught:
            load_sysbench(FakeHost(loaded=failed), ADDRESS, oltp(1), "/d")
        assert caught.value.details == (f"FATAL: {said}",)

    def test_every_table_is_checked(self):
        cell = Cell(workload="oltp-read-only", scale=2, clients=1, threads=1)
        text = verify_sysbench(cell)
        assert "FROM sbtest1 UNION ALL SELECT 'sbtest2', count(*), min(id), max(id) FROM sbtest2" in text
        assert "100000::bigint" in text
        assert "@" not in text


def test_what_it_cannot_do_is_known_to_plans():
    assert not CAPABILITIES.pausable
    assert not CAPABILITIES.skips_late
    assert CAPABILITIES.protocols == (Protocol.SIMPLE, Protocol.PREPARED)
