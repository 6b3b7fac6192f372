"""Data of the user's own on real servers: built once, cloned, never used half-made."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from databases import ask, dsn

pytestmark = [pytest.mark.server, pytest.mark.timeout(300)]

EXPERIMENT = """
blocks = 1
[common]
server = "embedded"
settings.shared_buffers = "16MB"
[factors]
"settings.work_mem" = ["4MB", "5MB"]
[[cells]]
workload = "orders"
clients = 1
rate = 50
run = "1s"
warmup = "0s"
scripts = [{ file = "read.sql" }]
[cells.data]
"""
READ = "\\set id random(1, 2000)\nSELECT amount FROM app.orders WHERE id = :id;\n"
MAKE = """
CREATE SCHEMA app;
CREATE TABLE app.orders (id int PRIMARY KEY, amount int NOT NULL);
INSERT INTO app.orders SELECT n, n * 7 FROM generate_series(1, 2000) AS n;
CREATE INDEX orders_amount ON app.orders (amount);
"""
CHECKS = """
SELECT 'orders' AS item, 2000 AS expected, count(*) AS found, count(*) = 2000 AS ok FROM app.orders
UNION ALL SELECT 'index', 1, count(*), count(*) = 1 FROM pg_indexes WHERE indexname = 'orders_amount'
"""
FILL = """#!/bin/sh
[ -z "$PGPASSWORD" ] || exit 9
echo "making orders"
"$1" -X -q -v ON_ERROR_STOP=1 -f make.sql || exit
[ ! -e slow ] || { touch "$2"; sleep 60; }
[ ! -e broken ] || { echo "the loader lost its source" >&2; kill -9 $$; }
"""


@pytest.fixture
def place(sandbox):
    """A sandbox with scripts, whose datasets of the user's own go away."""
    sandbox.file(READ, "read.sql")
    sandbox.file(CHECKS, "checks.sql")
    sandbox.file(MAKE, "make.sql")
    sandbox.file(FILL, "fill").chmod(0o755)
    yield sandbox
    for name in ("slow", "broken", "orders.csv"):
        (sandbox.root / name).unlink(missing_ok=True)
    subprocess.run(["sh", "-c", f"rm -rf {sandbox.root}/data/datasets/own_*"], check=True)


@pytest.fixture
def dump(running_server, sandbox):
    """A dump in custom format of a database with these orders, and a way to change what is in it."""
    ask(running_server, "postgres", "DROP DATABASE IF EXISTS shop; CREATE DATABASE shop")
    ask(running_server, "shop", MAKE)

    def take(form="c", change="SELECT 1"):
        ask(running_server, "shop", change)
        program = Path(running_server["psql"]).with_name("pg_dump")
        where = sandbox.root / f"shop.{form}"
        subprocess.run([program, f"-F{form}", "-f", where, dsn(running_server, "shop")], check=True)
        subprocess.run(["chmod", "-R", "a+rX", where], check=True)
        return where.name

    yield take
    subprocess.run(["sh", "-c", f"rm -rf {sandbox.root}/shop.?"], check=True)
    ask(running_server, "postgres", "DROP DATABASE shop")


def run(place, data, study="study", **more):
    return place.pgstrata("run", place.file(EXPERIMENT + data), "--study", place.root / study, **more)


def own(place):
    """Datasets of the user's own, and when they were made."""
    found = (place.root / "data" / "datasets").glob("own_*")
    return {path.name: (path / "pgstrata.marker").stat().st_mtime_ns for path in found}


def test_a_dump_is_restored_once_and_cloned_for_every_environment(place, dump):
    name = dump()
    done = run(place, f'dump = "{name}"\nchecks = "checks.sql"\n')
    assert done.returncode == 0, done.stdout + done.stderr
    first = own(place)
    assert len(first) == 1
    records = place.records(place.root / "study")
    assert len(records) == 2

    os.utime(place.root / name, (1, 1))
    done = run(place, f'dump = "{name}"\nchecks = "checks.sql"\n', "study-again")
    assert done.returncode == 0, done.stdout + done.stderr
    assert own(place) == first

    dump(change="UPDATE app.orders SET amount = 0 WHERE id = 1")
    done = run(place, f'dump = "{name}"\nchecks = "checks.sql"\n', "study-other")
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(own(place)) == 2


@pytest.mark.parametrize("form", ["d", "t"])
def test_other_formats_are_restored_too(place, dump, form):
    done = run(place, f'dump = "{dump(form)}"\nchecks = "checks.sql"\n')
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_dump_that_lacks_what_the_check_asks_for_is_no_dataset(place, dump):
    name = dump(change="DROP INDEX app.orders_amount")
    done = run(place, f'dump = "{name}"\nchecks = "checks.sql"\n')
    assert done.returncode == 1
    assert "item index, expected 1, found 0" in done.stdout + done.stderr
    assert own(place) == {}


def test_files_are_copied_into_tables_that_sql_makes(place):
    place.file("CREATE SCHEMA app; CREATE TABLE app.orders (id int PRIMARY KEY, amount int);\n", "make.sql")
    place.file("".join(f"{n},{n * 7}\n" for n in range(1, 2001)), "orders.csv")
    done = run(place, 'sql = "make.sql"\ncopy = { "app.orders" = "orders.csv" }\n')
    assert done.returncode == 0, done.stdout + done.stderr
    done = run(place, 'sql = "make.sql"\ncopy = { "app.order" = "orders.csv" }\n', "study-wrong")
    assert done.returncode == 1
    assert 'relation "app.order" does not exist' in done.stdout + done.stderr


def test_an_error_of_sql_has_its_file_and_line(place):
    place.file("CREATE SCHEMA app;\n\nCREATE TABLE app.orders (id integr);\n", "make.sql")
    done = run(place, 'sql = "make.sql"\n')
    assert done.returncode == 1
    assert 'type "integr" does not exist' in done.stdout + done.stderr
    assert "make.sql:3" in done.stdout + done.stderr
    assert own(place) == {}


def test_a_loader_that_dies_leaves_nothing_that_is_used_and_no_secret_is_kept(place, running_server):
    data = (
        f'command = ["./fill", "{running_server["psql"]}", "{place.root}/data/begun"]\nfiles = ["fill", "make.sql"]\n'
    )
    (place.root / "broken").touch()
    secret = {"PGPASSWORD": "canary-of-the-environment"}
    done = run(place, data, environ=secret)
    assert done.returncode == 1
    assert "the loader lost its source" in done.stdout + done.stderr
    assert "killed by SIGKILL" in done.stdout + done.stderr
    assert own(place) == {}
    (place.root / "broken").unlink()
    done = run(place, data + 'checks = "checks.sql"\n', "study-better", environ=secret)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(own(place)) == 1
    kept = [path for path in (place.root / "study-better").rglob("*") if path.is_file()]
    assert kept
    assert not any(b"canary-of-the-environment" in path.read_bytes() for path in kept)


def test_a_run_that_breaks_what_must_hold_is_invalid(place):
    place.file("\\set id random(1, 2000)\nUPDATE app.orders SET amount = 0 WHERE id = :id;\n", "read.sql")
    place.file(
        "SELECT 'sum' AS item, 0 AS expected, count(*) AS found, count(*) = 0 AS ok FROM app.orders WHERE amount = 0",
        "after.sql",
    )
    done = run(place, 'sql = "make.sql"\nconsistency = "after.sql"\n')
    shown = place.pgstrata("show", place.root / "study").stdout
    assert "consistency" in shown + done.stdout, shown + done.stdout
    assert len(own(place)) == 1


def test_a_running_server_is_filled_too_but_no_command_runs_as_root(place, dump, running_server):
    text = EXPERIMENT.replace(
        'server = "embedded"\nsettings.shared_buffers = "16MB"', f'server = "dsn:{running_server["dsn"]}"'
    )
    text = text.replace('"settings.work_mem" = ["4MB", "5MB"]', '"options.setup_sql" = ["one.sql", "two.sql"]')
    place.file("SELECT 1;\n", "one.sql")
    place.file("SELECT 2;\n", "two.sql")
    file = place.file(text + f'dump = "{dump()}"\nchecks = "checks.sql"\n')
    done = place.pgstrata("run", file, "--study", place.root / "study")
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(place.records(place.root / "study")) == 2
    found = ask(running_server, "postgres", "SELECT datname FROM pg_database WHERE datname ~ '^pgstrata_own_'")
    assert len(found) == 2
    for (name,) in found:
        ask(running_server, "postgres", f"DROP DATABASE {name}")
    if os.getuid() == 0:
        done = place.pgstrata("run", place.file(text + 'command = ["./fill"]\n'), "--study", place.root / "study-root")
        assert done.returncode == 4
        assert "never run as root" in done.stdout + done.stderr


def test_a_killed_pgstrata_leaves_no_half_made_dataset(place, running_server):
    begun = place.root / "data" / "begun"
    begun.unlink(missing_ok=True)
    (place.root / "slow").touch()
    data = f'command = ["./fill", "{running_server["psql"]}", "{begun}"]\nfiles = ["fill", "make.sql"]\n'
    running = place.start("run", place.file(EXPERIMENT + data), "--study", place.root / "study")
    deadline = time.monotonic() + 120
    while not begun.exists() and running.poll() is None and time.monotonic() < deadline:
        time.sleep(0.1)
    assert begun.exists()
    os.killpg(running.pid, signal.SIGKILL)
    running.communicate()
    assert [name for name in own(place) if not name.endswith(".partial")] == []
    (place.root / "slow").unlink()
    done = run(place, data)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [name.endswith(".partial") for name in own(place)] == [False]
    plan = json.loads(place.pgstrata("plan", "--json", place.root / "experiment.toml").stdout)
    assert plan["cells"][0]["identity"] == "orders-c1-r50"
