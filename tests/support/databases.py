"""A database of a running server with the data of a workload, and ways to ask it."""

import os
import subprocess
from contextlib import contextmanager
from pathlib import Path

CLEAN = {**os.environ, "LC_ALL": "C"}


def dsn(server, database):
    return server["dsn"].replace("dbname=postgres", f"dbname={database}")


def ask(server, database, script):
    """Rows of a script, each a tuple of texts."""
    done = subprocess.run(
        [server["psql"], "-X", "-q", "-At", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-d", dsn(server, database), "-f", "-"],
        input=script, text=True, capture_output=True, check=False, env=CLEAN,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [tuple(line.split("\t")) for line in done.stdout.splitlines()]


@contextmanager
def database_of(server, data):
    """A database with the data of scale 1; its name."""
    name = f"test_{data.name}"
    ask(server, "postgres", f"CREATE DATABASE {name}")
    for step in data.steps_at(1):
        for script in step:
            ask(server, name, script)
    ask(server, name, "VACUUM ANALYZE")
    yield name
    ask(server, "postgres", f"DROP DATABASE {name}")


def wrong(server, database, query, change=""):
    """The items of a check that do not hold after a change, which is taken back."""
    rows = ask(server, database, f"BEGIN; {change};{query}; ROLLBACK;")
    assert rows
    return [row[0] for row in rows if row[-1] != "t"]


def drive(server, database, folder, scripts, *, clients=2, transactions=20):
    """Run scripts by pgbench to their end; its output."""
    arguments = []
    for script in scripts:
        path = folder / script.file.replace("/", "-")
        path.write_text(script.text)
        arguments += ["-f", f"{path}@{script.weight}"]
    pgbench = Path(server["psql"]).with_name("pgbench")
    words = [
        "-n",
        "-M",
        "prepared",
        "-c",
        str(clients),
        "-t",
        str(transactions),
        "-s",
        "1",
        "--max-tries=10",
        "--random-seed=7",
    ]
    done = subprocess.run(
        [pgbench, *words, *arguments, dsn(server, database)], text=True, capture_output=True, check=False, env=CLEAN
    )
    assert done.returncode == 0, done.stderr
    total = clients * transactions
    assert f"number of transactions actually processed: {total}/{total}" in done.stdout
    return done.stdout


def statement(script, **values):
    """The only statement of a script, with values for its variables."""
    text = script.text.rpartition("\\set")[2].partition("\n")[2] if "\\set" in script.text else script.text
    text = "\n".join(line for line in text.splitlines() if not line.startswith("--"))
    for name, value in values.items():
        text = text.replace(f":{name}", str(value))
    return text
