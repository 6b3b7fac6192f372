import gzip
from dataclasses import dataclass

import pytest

from driver_host import DriverHost
from pgstrata.drivers.pgbench.driver import PgbenchDriver, verify_sql
from pgstrata.errors import UsageError
from pgstrata.libpq import compose_connection
from pgstrata.model.experiment import Cell, Protocol, Script, ServerKind, ServerSpec
from pgstrata.model.secret import Secret
from pgstrata.model.server import Address, Build, ServerVersion
from pgstrata.model.workload import DataKind
from pgstrata.model.workload import Workload as WorkloadDescription
from pgstrata.ports.driver import Load
from pgstrata.ports.host import Completed
from pgstrata.workloads import builtin_workloads

DATA = DataKind(name="pgbench", title="", unit="", bytes_per_scale=1)
SELECT_ONLY = WorkloadDescription(name="select-only", title="", data=DATA, writes=False, builtin="select-only")
CUSTOM = WorkloadDescription(name="custom", title="", data=DATA, writes=True)
ADDRESS = Address(host="/run/s", port=5433, user="postgres", database="bench")


@dataclass
class FakeHost(DriverHost):
    shown: bytes = b""

    def list_folder(self, path):
        return tuple(sorted(name.removeprefix(f"{path}/") for name in self.files if name.startswith(f"{path}/")))

    def run(self, command, *, timeout=600.0, check=True):
        self.ran.append(command)
        return Completed(code=0, stdout=b"pgbench (PostgreSQL) 18.6\n", stderr=self.shown)


def tools(number=180006):
    return Build(
        spec=ServerSpec(kind=ServerKind.EMBEDDED),
        prefix="/opt/pg",
        version=ServerVersion(text="18.6", number=number),
        supplier="",
        compiler="",
        configure="",
        cflags="",
        digest="",
        process_environment={"LD_LIBRARY_PATH": "/opt/pg/lib"},
    )


def cell(**changes):
    return Cell(**{"workload": "select-only", "scale": 10, "clients": 4, "threads": 2, **changes})


def load(cell, workload=SELECT_ONLY, address=ADDRESS, **changes):
    return Load(**{"cell": cell, "workload": workload, "address": address, "seconds": 60.0, "seed": 42, **changes})


def started(given, number=180006):
    host = FakeHost()
    PgbenchDriver(host, tools(number)).start(given, "/f")
    ((command, stdout, stderr),) = host.spawned
    assert (stdout, stderr) == ("/f/pgbench.out", "/f/pgbench.err")
    return command, host


def options(given, number=180006):
    command, _ = started(given, number)
    assert command.argv[0] == "/opt/pg/bin/pgbench"
    return " ".join(command.argv[1:])


class TestCommand:
    def test_of_a_built_in_script_names_everything_that_matters(self):
        assert options(load(cell())) == (
            "-n -M prepared -c 4 -j 2 -T 60 -P 1 --random-seed=42 -b select-only --failures-detailed bench"
        )

    def test_asks_no_details_of_failures_where_pgbench_does_not_know_them(self):
        assert "--failures-detailed" not in options(load(cell()), number=140023)

    def test_takes_rate_and_latency_limit_in_pgbench_units(self):
        assert "-R 1500.5 -L 2.5" in options(load(cell(rate=1500.5, latency_limit=0.0025)))

    def test_gives_large_rates_without_an_exponent(self):
        assert "-R 1000000 " in options(load(cell(rate=1e6)))

    def test_rounds_the_duration_up_to_whole_seconds(self):
        assert "-T 3 " in options(load(cell(), seconds=2.1))
        assert "-T 1 " in options(load(cell(), seconds=0.01))

    def test_counts_transactions_instead_of_seconds_when_asked(self):
        text = options(load(cell(), transactions=100))
        assert "-t 100" in text
        assert "-T" not in text.split()

    def test_logs_nothing_a_sample_or_everything(self):
        assert "-l" not in options(load(cell())).split()
        assert "-l --log-prefix=/f/tx --sampling-rate=0.01" in options(load(cell(), sampling_rate=0.01))
        full = options(load(cell(), sampling_rate=1.0))
        assert "-l --log-prefix=/f/tx" in full
        assert "--sampling-rate" not in full

    def test_of_a_connection_for_each_transaction_runs_the_workload_s_own_script(self):
        connect = builtin_workloads()["connect"]
        command, host = started(load(cell(workload="connect"), connect))
        assert " -C " in f" {' '.join(command.argv)} "
        assert "-f /f/connect.sql@1" in " ".join(command.argv)
        assert host.files["/f/connect.sql"] == b"SELECT 1;\n"

    def test_words_in_front_come_first(self):
        command, _ = started(load(cell(), launch=("taskset", "--cpu-list", "3")))
        assert command.argv[:4] == ("taskset", "--cpu-list", "3", "/opt/pg/bin/pgbench")

    def test_can_be_without_progress_and_with_a_profile_and_another_protocol(self):
        text = options(load(cell(profile=True, protocol=Protocol.SIMPLE), progress=None))
        assert "-P" not in text.split()
        assert "-r" in text.split()
        assert "-M simple" in text

    def test_of_scripts_writes_them_and_tells_scale_options_and_weights(self):
        scripts = (Script(file="a/x.sql", text="SELECT 1;"), Script(file="b/x.sql", text="SELECT 2;", weight=3))
        chosen = cell(scripts=scripts, options={"extra_work": "1000", "setup_sql": "x.sql", "no-variable": "1"})
        command, host = started(load(chosen, CUSTOM))
        text = " ".join(command.argv)
        assert "-s 10 -D extra_work=1000 -f /f/script-1.sql@1 -f /f/script-2.sql@3" in text
        assert "-b" not in command.argv
        assert "setup_sql" not in text
        assert host.files == {"/f/script-1.sql": b"SELECT 1;", "/f/script-2.sql": b"SELECT 2;"}

    def test_without_anything_to_run_is_refused_with_a_remedy(self):
        with pytest.raises(UsageError, match="name its scripts"):
            started(load(cell(workload="custom"), CUSTOM))

    def test_speaks_english_and_finds_its_libraries(self):
        command, _ = started(load(cell()))
        assert command.environment["LC_ALL"] == "C"
        assert command.environment["LD_LIBRARY_PATH"] == "/opt/pg/lib"


class TestConnection:
    def test_goes_by_environment(self):
        command, _ = started(load(cell()))
        assert command.environment["PGHOST"] == "/run/s"
        assert command.environment["PGPORT"] == "5433"
        assert command.environment["PGUSER"] == "postgres"
        assert command.environment["PGDATABASE"] == "bench"

    def test_hands_the_password_over_apart_from_the_environment(self):
        parameters = {"passfile": "/home/me/other"}
        address = Address(host="db", port=5432, user="u", database="d", password=Secret("hush"), parameters=parameters)
        command, _ = started(load(cell(), address=address))
        assert command.password == Secret("hush")
        assert "hush" not in repr(command)
        assert "PGPASSFILE" not in command.environment

    def test_takes_parameters_by_variable_or_as_the_last_argument(self):
        address = Address(
            host="db", port=5432, user="u", database="d", parameters={"sslmode": "require", "keepalives_idle": "o'k\\"}
        )
        connection = compose_connection(address)
        assert connection.environment["PGSSLMODE"] == "require"
        assert connection.arguments == ("dbname='d' keepalives_idle='o\\'k\\\\'",)

    def test_takes_a_database_of_an_odd_name_as_a_name(self):
        for name in ("a=b", "postgres://x", "-f"):
            (argument,) = compose_connection(ADDRESS.with_database(name)).arguments
            assert argument == f"dbname='{name}'"

    @pytest.mark.parametrize("keyword", ["password", "sslpassword", "scram_client_key"])
    def test_refuses_a_secret_that_it_cannot_hide(self, keyword):
        address = Address(host="db", port=5432, user="u", database="d", parameters={keyword: "hush"})
        with pytest.raises(UsageError) as error:
            compose_connection(address)
        assert "hush" not in str(error.value)

    def test_leaves_to_a_service_what_it_does_not_know(self):
        address = Address(host="", port=0, user="", database="", parameters={"service": "prod"})
        assert compose_connection(address).environment == {"PGSERVICE": "prod"}


class TestFacts:
    def test_are_version_and_digest_and_asked_once(self):
        host = FakeHost(files={"/opt/pg/bin/pgbench": b"binary"})
        driver = PgbenchDriver(host, tools())
        assert driver.facts() == driver.facts()
        assert driver.facts() == {
            "version": "18.6",
            "sha256": "9a3a45d01531a20e89ac6ae10b0b0beb0492acd7216a368aa062d1a5fecaf9cd",
        }
        assert len(host.ran) == 1


def texts(driver, asked):
    return [statement.with_values for statement in driver.statements(asked)]


class TestStatements:
    def test_are_those_of_the_cell_or_what_pgbench_shows_of_its_own_asked_once(self):
        own = (Script(file="a.sql", text="SELECT 1;"), Script(file="b.sql", text="SELECT 2; SELECT 3;", weight=3))
        host = FakeHost(shown=b"-- select-only: <builtin: select only>\nSELECT 3;\n")
        driver = PgbenchDriver(host, tools())
        assert texts(driver, load(cell(scripts=own), CUSTOM)) == ["SELECT 1", "SELECT 2", "SELECT 3"]
        for _ in range(2):
            assert texts(driver, load(cell())) == ["SELECT 3"]
        (asked,) = host.ran
        assert asked.argv == ("/opt/pg/bin/pgbench", "--show-script=select-only")

    def test_are_none_where_pgbench_does_not_show_its_own(self):
        assert PgbenchDriver(FakeHost(), tools(120000)).statements(load(cell())) == ()

    def test_find_scale_and_options_as_variables(self):
        own = (Script(file="a.sql", text="SELECT :scale, :client_id, :work, :setup_sql;"),)
        asked = load(cell(scripts=own, options={"work": "7", "setup_sql": "x"}), CUSTOM)
        assert texts(PgbenchDriver(FakeHost(), tools()), asked) == ["SELECT 10, 0, 7, 1"]


def test_the_least_load_is_select_1_by_the_same_clients_without_rate_or_limit():
    asked = load(cell(rate=50.0, latency_limit=0.1, profile=True, options={"x": "1"}))
    least = PgbenchDriver(FakeHost(), tools()).least_load(asked).cell
    assert [script.text for script in least.scripts] == ["SELECT 1;\n"]
    assert (least.rate, least.latency_limit, least.profile, least.options) == (None, None, False, {})
    assert (least.clients, least.threads) == (4, 2)


class TestProgress:
    LINES = b"pgbench: setting random seed to 7\nprogress: 1.0 s, 10.0 tps, lat 1.000 ms stddev 0.1, 0 failed\n"

    def test_is_read_from_where_it_was_left(self):
        host = FakeHost(files={"/f/pgbench.err": self.LINES + b"progress: 2.0 s, 2"})
        driver = PgbenchDriver(host, tools())
        points, offset = driver.progress("/f", 0)
        assert [point.time for point in points] == [1.0]
        assert offset == len(self.LINES)
        host.files["/f/pgbench.err"] += b"0.0 tps, lat 1.000 ms stddev 0.1, 1 failed\n"
        points, offset = driver.progress("/f", offset)
        assert [(point.time, point.tps, point.failed) for point in points] == [(2.0, 20.0, 1)]
        assert driver.progress("/f", offset) == ((), offset)

    def test_is_empty_before_there_is_a_file(self):
        assert PgbenchDriver(FakeHost(), tools()).progress("/f", 0) == ((), 0)


class TestCollect:
    def test_joins_the_logs_of_the_threads_in_order_and_nothing_else(self):
        files = {
            "/f/pgbench.out": b"out",
            "/f/pgbench.err": b"err",
            "/f/tx.4711": b"0 1 100 0 1795172798 1\n",
            "/f/tx.4711.2": b"2 1 300 0 1795172798 1\n",
            "/f/tx.4711.1": b"1 1 200 0 1795172798 1\n1 2 9",
            "/f/script-1.sql": b"SELECT 1;",
        }
        driver = PgbenchDriver(FakeHost(files=files), tools())
        found = driver.collect("/f")
        assert found.keys() == {"pgbench.out", "pgbench.err", "transactions.log.gz"}
        assert gzip.decompress(found["transactions.log.gz"]) == (
            b"0 1 100 0 1795172798 1\n1 1 200 0 1795172798 1\n2 1 300 0 1795172798 1\n"
        )
        assert driver.collect("/f") == found
        assert driver.parse(found).samples == 3

    def test_is_content_with_what_is_there(self):
        assert PgbenchDriver(FakeHost(files={"/f/pgbench.err": b"x"}), tools()).collect("/f") == {"pgbench.err": b"x"}


def test_verifying_knows_the_scale_and_is_one_query():
    query = verify_sql(50)
    assert "50::bigint * 100000" in query
    assert "@" not in query
    assert ";" not in query

    def test_keeps_no_constant_of_a_statement(self):
        said = b"statement latencies in milliseconds and failures:\n   0.123   0 SELECT 'geheim', :a;\nend 'x'\n\xff"
        found = PgbenchDriver(FakeHost(files={"/f/pgbench.out": said}), tools()).collect("/f")
        assert found["pgbench.out"] == said.replace(b"'geheim'", b"?")
