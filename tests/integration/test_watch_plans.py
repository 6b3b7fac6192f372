"""A recorder of a real server keeps plans without running a statement, and `explain` tells of the one that changed."""

import json
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from databases import CLEAN, ask, dsn
from pgstrata.app.machine import open_machine
from pgstrata.app.running_server import parse_dsn
from pgstrata.collectors.plans import PlanExplainer
from pgstrata.drivers.pgbench.script import parse_statements
from pgstrata.model.experiment import Protocol
from pgstrata.servers.psql import PsqlSql

pytestmark = [pytest.mark.server, pytest.mark.timeout(300)]

TABLES = """
CREATE TABLE stock (id int PRIMARY KEY, pieces int NOT NULL, note text, day date NOT NULL DEFAULT current_date);
INSERT INTO stock SELECT n, 100, 'secret note ' || n FROM generate_series(1, 20000) AS n;
ANALYZE stock;
CREATE EXTENSION pg_stat_statements;
CREATE ROLE planner LOGIN PASSWORD 'canary-pw-7391';
GRANT pg_monitor TO planner;
GRANT SELECT ON stock TO planner;
"""
SCRIPT = """
\\set id random(1, 20000)
SELECT count(*) FROM stock WHERE id = :id AND note <> 'canary-constant' /* it's here; */
   AND day > current_date - interval '9 days';
UPDATE stock SET pieces = pieces + 1 WHERE id = :id;
\\sleep 20 ms
"""
LOGGED = """
\\set id random(1, 20000)
SELECT max(pieces) FROM stock WHERE id < :id AND note <> 'canary-constant';
\\sleep 200 ms
"""
LOGGING = "-c session_preload_libraries=auto_explain -c auto_explain.log_min_duration=0"
FOUND = "SELECT 1 FROM plan p JOIN statement s ON s.id = p.statement WHERE {} AND text LIKE '{}%'"
QUERIES = (
    FOUND.format("source = 'generic' AND shape <> '' AND moment >= ?", "select count(*)"),
    FOUND.format("problem <> '' AND until >= ?", "update stock"),
)
"""The plan of one statement, and why another has none."""


@pytest.fixture(scope="module")
def shop(counting_server):
    ask(counting_server, "postgres", "CREATE DATABASE planned")
    ask(counting_server, "planned", TABLES)
    yield counting_server
    ask(counting_server, "postgres", "DROP DATABASE planned WITH (FORCE); DROP ROLE planner")


def record(sandbox, shop, archive, queries):
    """Record until all of these have an answer in the archive since now, and two seconds more; begin and end."""
    begin = time.time()
    place = dsn(shop, "planned").replace("user=boss", "user=planner")
    words = [sys.executable, "-m", "pgstrata", "watch", place, "--archive", archive, "--plain"]
    recorder = subprocess.Popen(
        list(map(str, words)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=sandbox.environ
    )
    deadline = time.monotonic() + 120
    while not known(archive, begin, queries) and time.monotonic() < deadline:
        time.sleep(0.5)
    time.sleep(2)
    recorder.send_signal(signal.SIGINT)
    _, err = recorder.communicate(timeout=60)
    assert recorder.returncode == 0, err
    return begin, time.time(), err


def known(archive, since, queries):
    path = archive / "archive.sqlite"
    if not path.exists():
        return False
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        try:
            return all(connection.execute(query, (since,)).fetchone() for query in queries)
        except sqlite3.OperationalError:
            return False  # its tables are being made


def load(shop, script, text, options=""):
    script.write_text(text)
    pgbench = Path(shop["psql"]).with_name("pgbench")
    return subprocess.Popen(
        [pgbench, "-n", "-c", "2", "-T", "600", "-f", script, dsn(shop, "planned")],
        env={**CLEAN, "PGAPPNAME": "shop", "PGOPTIONS": options}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.fixture(scope="module")
def recorded(shared_sandbox, shop, tmp_path_factory):
    folder = tmp_path_factory.mktemp("plans")
    benches = [load(shop, folder / "script.sql", SCRIPT), load(shop, folder / "logged.sql", LOGGED, LOGGING)]
    try:
        before = record(shared_sandbox, shop, folder / "archive", QUERIES)
        ask(shop, "planned", "ALTER TABLE stock DROP CONSTRAINT stock_pkey")
        after = record(shared_sandbox, shop, folder / "archive", QUERIES)
    finally:
        for bench in benches:
            bench.terminate()
            bench.wait()
    return folder / "archive", before, after


def times(recorded):
    (begin, end, _), (since, until, _) = recorded[1:]
    one, two, three, four = (
        datetime.fromtimestamp(each, tz=UTC).isoformat(timespec="seconds")
        for each in (begin + 1, end, since + 1, until)
    )
    return "--from", three, "--to", four, "--against", f"{one}..{two}"


def test_the_plan_that_changed_is_told_with_both_outlines(sandbox, recorded):
    done = sandbox.pgstrata("explain", recorded[0], *times(recorded), "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    texts = {found["texts"][each["statement"]]: each for each in found["plans"]["changes"]}
    change = next(each for text, each in texts.items() if text.startswith("select count(*) from stock where id = ?"))
    assert change["source"] == "generic"
    assert any("Index Scan using stock_pkey on stock" in line for line in change["reference"]["outline"])
    assert any("Seq Scan on stock" in line for line in change["value"]["outline"])
    assert change["after"] < change["by"]


def test_a_statement_that_the_role_may_not_plan_says_why(sandbox, recorded):
    done = sandbox.pgstrata("explain", recorded[0], *times(recorded), "--format", "text")
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert "No plan of update stock set pieces = pieces + ? where id = ?: permission denied for table stock" in said
    assert "a statement has no plan in the archive: permission denied for table stock (GRANT SELECT" in recorded[1][2]


def test_plans_of_the_servers_log_are_counted_under_the_servers_id(shop, recorded):
    words = [shop["psql"], "-X", "-c", "LOAD 'auto_explain'", "-d", dsn(shop, "planned")]
    if subprocess.run(words, capture_output=True, env=CLEAN).returncode:
        pytest.skip("this build has no auto_explain")
    with closing(sqlite3.connect(recorded[0] / "archive.sqlite")) as connection:
        query = (
            "SELECT s.text, max(p.times), p.outline FROM plan p JOIN statement s ON s.id = p.statement "
            "WHERE p.source = 'logged' GROUP BY 1"
        )
        found = {text: (times, outline) for text, times, outline in connection.execute(query)}
    times, outline = found["select max(pieces) from stock where id < ? and note <> ?"]
    assert times > 10
    assert "stock" in outline


def test_no_constant_reaches_the_archive_and_questions_for_plans_are_no_load(sandbox, recorded):
    content = b"".join(path.read_bytes() for path in recorded[0].iterdir())
    assert b"canary-constant" not in content
    assert b"secret note" not in content
    assert b"generic_plan" not in content.lower()


def test_a_superuser_is_not_asked_for_plans(sandbox, shop, tmp_path):
    from pgstrata.collectors.live.plans import explainable_statement

    rows = ask(shop, "planned", "SELECT queryid FROM pg_stat_statements WHERE query LIKE 'UPDATE stock%' LIMIT 1")
    ((_, problem, text),) = ask(shop, "planned", explainable_statement([rows[0][0]], "public"))
    assert (problem, text) == ("superuser", "")


@pytest.mark.parametrize(
    ("version", "protocol"),
    [(180000, Protocol.PREPARED), (120000, Protocol.PREPARED), (180000, Protocol.SIMPLE)],
    ids=["generic", "prepared", "values"],
)
def test_statements_that_cannot_be_explained_have_the_servers_own_error(shop, version, protocol):
    # the first one needs no table: others drop an index of the shop's
    script = "SELECT 1 WHERE :id > 0; SELECT x FROM nowhere WHERE id = :id; UPDATE stock SET pieces = 'much';"
    build = SimpleNamespace(version=SimpleNamespace(number=version))
    environment = SimpleNamespace(settings={})
    server = SimpleNamespace(address=parse_dsn(dsn(shop, "planned")), environment=environment, build=build)
    with open_machine(print) as machine:
        sql = PsqlSql(machine.here, machine.servers.client_tools())
        statements = parse_statements(f"\\set id 7\n{script}", {})
        evidence = PlanExplainer().capture(SimpleNamespace(sql=sql, server=server), statements, protocol)
    first, second, third = PlanExplainer().parse(evidence)
    assert (first.shape, first.error) == (("Result",), "")
    assert (second.error, second.text) == ('relation "nowhere" does not exist', "")
    assert (third.error, third.text) == ("invalid input syntax for type integer: ?", "")
