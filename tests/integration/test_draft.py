"""A draft from a real server under a load, whose scripts then run under pgbench, and as an experiment."""

import subprocess
from pathlib import Path

import pytest

from databases import CLEAN, ask, drive, dsn
from pgstrata.model.draft import LOOK
from pgstrata.model.experiment import Script

pytestmark = [pytest.mark.server, pytest.mark.timeout(300)]

TABLES = """
CREATE TABLE customers (id int PRIMARY KEY, name text);
CREATE TABLE orders (id int PRIMARY KEY, customer int REFERENCES customers, amount numeric, status text, kind int2);
INSERT INTO customers SELECT n, 'secret name ' || n FROM generate_series(1, 500) AS n;
INSERT INTO orders SELECT n, 1 + n % 500, n % 90, CASE n % 7 WHEN 0 THEN 'open' ELSE 'done' END, n % 3
FROM generate_series(1, 5000) AS n;
CREATE FUNCTION total(int) RETURNS numeric LANGUAGE sql AS 'SELECT sum(amount) FROM orders WHERE customer = $1';
CREATE EXTENSION pg_stat_statements;
CREATE ROLE watcher LOGIN PASSWORD 'canary-pw-7391';
GRANT SELECT ON customers TO watcher;
VACUUM ANALYZE;
"""
LOAD = """
\\set id random(1, 5000)
SELECT o.id, c.name FROM orders o JOIN customers c ON c.id = o.customer WHERE o.id = :id;
UPDATE orders SET amount = amount + 3 WHERE id = :id;
SELECT sum(amount) FROM orders WHERE customer BETWEEN :id / 11 AND 1 + :id / 10;
SELECT count(*) FROM orders WHERE customer BETWEEN 3 AND 9 AND kind = 1;
SELECT id FROM orders WHERE status = 'open' ORDER BY amount LIMIT 5;
SELECT total(7);
"""


@pytest.fixture(scope="module")
def shop(counting_server, tmp_path_factory):
    ask(counting_server, "postgres", "CREATE DATABASE shop")
    ask(counting_server, "shop", TABLES)
    folder = tmp_path_factory.mktemp("load")
    ask(counting_server, "shop", "SELECT pg_stat_statements_reset()")
    drive(counting_server, "shop", folder, [Script(file="load.sql", text=LOAD)], transactions=100)
    return counting_server


@pytest.fixture
def draft(sandbox, shop):
    """Draft from the shop; the folder goes away."""
    folder = sandbox.root / "study-draft"

    def make(*more, **changes):
        place = changes.get("dsn", dsn(shop, "shop"))
        return folder, sandbox.pgstrata("workload", "draft", place, "--output", folder, *more)

    return make


def test_scripts_of_a_draft_run_under_pgbench_and_the_rest_waits_for_a_person(sandbox, shop, draft, tmp_path):
    folder, done = draft()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "% of the time" in done.stdout
    assert "may be values of rows" in done.stdout
    texts = {path.name: path.read_text() for path in (folder / "scripts").iterdir()}
    everything = "".join(texts.values()) + (folder / "experiment.toml").read_text() + done.stdout
    assert "secret name" not in everything
    assert "canary-pw" not in everything
    assert "'open'" not in everything

    finished = {name: text for name, text in texts.items() if LOOK not in text}
    assert any("UPDATE orders SET amount = amount + :amount" in text for text in finished.values())
    assert any("customer BETWEEN :customer AND :customer_2 AND kind = :kind" in text for text in finished.values())
    assert any("\\set id random(1, 5000)" in text for text in finished.values())
    drive(shop, "shop", tmp_path, [Script(file=name, text=text) for name, text in finished.items()], transactions=50)

    planned = sandbox.pgstrata("plan", folder / "experiment.toml", real=True)
    assert planned.returncode == 2
    assert "status is a value of orders.status (text)" in planned.stderr
    assert "the draft is not finished" in planned.stderr
    assert "'shop.dump' does not exist" in planned.stderr

    for path in (folder / "scripts").iterdir():
        kept = [line for line in path.read_text().splitlines() if not line.startswith(LOOK)]
        path.write_text("\\set status 1\n\\set limit 5\n\\set p1 7\n" + "\n".join(kept) + "\n")
    pg_dump = Path(shop["psql"]).with_name("pg_dump")
    subprocess.run([pg_dump, "-Fc", "-f", folder / "shop.dump", dsn(shop, "shop")], check=True, env=CLEAN)
    planned = sandbox.pgstrata("plan", folder / "experiment.toml", real=True)
    assert planned.returncode == 0, planned.stdout + planned.stderr
    assert "data by the dump shop.dump" in planned.stdout


def test_a_draft_overwrites_nothing_and_changes_nothing(shop, draft):
    folder, done = draft("--top", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(list((folder / "scripts").iterdir())) == 2
    _, again = draft()
    assert again.returncode == 2
    assert "nothing in it is overwritten" in again.stderr
    assert ask(shop, "shop", "SELECT sum(n_tup_ins) FROM pg_stat_user_tables WHERE relname = 'pgstrata_marker'") == [
        ("",)
    ]


def test_without_the_extension_or_the_right_to_see_there_is_a_remedy(shop, draft):
    _, done = draft(dsn=dsn(shop, "postgres"))
    assert done.returncode == 4
    assert "CREATE EXTENSION pg_stat_statements" in done.stderr
    _, done = draft(dsn=dsn(shop, "shop").replace("user=boss", "user=watcher"))
    assert done.returncode == 4
    assert "pg_read_all_stats" in done.stderr
    ask(shop, "postgres", "GRANT pg_read_all_stats TO watcher")
    _, done = draft(dsn=dsn(shop, "shop").replace("user=boss", "user=watcher"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "let this role read it" in "".join(path.read_text() for path in (draft()[0] / "scripts").iterdir())


def test_a_library_that_is_not_loaded_has_a_remedy(running_server, draft):
    ask(running_server, "postgres", "CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
    _, done = draft(dsn=running_server["dsn"])
    ask(running_server, "postgres", "DROP EXTENSION pg_stat_statements")
    assert done.returncode == 4
    assert "shared_preload_libraries" in done.stderr
    _, done = draft(dsn="host=/nowhere port=1 passwort=hunter2")
    assert done.returncode == 2
    assert "hunter2" not in done.stdout + done.stderr
