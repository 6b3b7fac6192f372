"""A real server under load is recorded while a session blocks it, and the explanation names wait and blocker."""

import json
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

import program
from databases import CLEAN, ask, dsn
from pgstrata.collectors.live.horizon import horizon_statement

pytestmark = [pytest.mark.server, pytest.mark.timeout(300)]

TABLES = """
CREATE TABLE stock (id int PRIMARY KEY, pieces int NOT NULL, note text);
INSERT INTO stock SELECT n, 100, 'secret note ' || n FROM generate_series(1, 20) AS n;
"""
SCRIPT = """
\\set id random(1, 3)
UPDATE stock SET pieces = pieces + 1 WHERE id = :id AND note <> 'canary-constant';
\\sleep 20 ms
"""
QUIET, BLOCKED = 22, 6


@pytest.fixture(scope="module")
def shop(counting_server):
    ask(counting_server, "postgres", "CREATE DATABASE watched")
    ask(counting_server, "watched", f"{TABLES}CREATE EXTENSION pg_stat_statements;")
    yield counting_server
    ask(counting_server, "postgres", "DROP DATABASE watched WITH (FORCE)")


def start(sandbox, shop, archive, *more):
    words = [sys.executable, "-m", "pgstrata", "watch", dsn(shop, "watched"), "--archive", archive, *more]
    return subprocess.Popen(
        list(map(str, words)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=sandbox.environ
    )


def here(sandbox, *arguments):
    """The program in this process, which saves its start."""
    return program.run_here(sandbox.root, sandbox.environ, *arguments)


def load(shop, folder):
    script = folder / "script.sql"
    script.write_text(SCRIPT)
    pgbench = Path(shop["psql"]).with_name("pgbench")
    return subprocess.Popen(
        [pgbench, "-n", "-c", "4", "-T", "600", "-f", script, dsn(shop, "watched")],
        env={**CLEAN, "PGAPPNAME": "shop"}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def await_looks(archive, least, *, since=0.0):
    """Until the recorder has looked so often since a moment, however busy the machine is."""
    query, path = "SELECT count(*), max(moment) FROM look_second WHERE moment > ?", archive / "archive.sqlite"
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            if connection.execute(query, (since,)).fetchone()[0] >= least:
                return
        time.sleep(0.2)
    raise AssertionError("the recorder did not look")


def block(shop, archive, looks):
    """A transaction that changes all rows, and then does nothing for so many looks; the moment of its end."""
    words = [shop["psql"], "-X", "-q", "-d", dsn(shop, "watched")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, text=True, env={**CLEAN, "PGAPPNAME": "night job"}) as session:
        session.stdin.write("BEGIN; UPDATE stock SET pieces = pieces;\n")
        session.stdin.flush()
        await_looks(archive, looks, since=time.time() + 1)
        end = time.time()
        session.stdin.write("COMMIT;\n")
        session.stdin.close()
    return end


@pytest.fixture(scope="module")
def recorded(shared_sandbox, shop, tmp_path_factory):
    """An archive, and when the block began and ended."""
    folder = tmp_path_factory.mktemp("watch")
    recorder = start(shared_sandbox, shop, folder / "archive")
    assert "recording PostgreSQL" in recorder.stderr.readline()
    archive = folder / "archive"
    bench = load(shop, folder)
    await_looks(archive, QUIET)
    begin = time.time()
    end = block(shop, archive, BLOCKED)
    subprocess.run([shop["psql"], "-X", "-d", dsn(shop, "watched"), "-c", "SELECT 1 / 0"], capture_output=True)
    await_looks(archive, 2, since=time.time())
    bench.terminate()
    bench.wait()
    recorder.send_signal(signal.SIGINT)
    out, err = recorder.communicate(timeout=30)
    assert recorder.returncode == 0, err
    assert "seconds recorded in" in out
    assert "stopped: the archive is complete up to now" in err
    return folder / "archive", begin, end


def moment(seconds):
    return datetime.fromtimestamp(seconds, tz=UTC).isoformat(timespec="seconds")


def explain(sandbox, recorded, *more):
    archive, begin, end = recorded
    times = ("--from", moment(begin + 1), "--to", moment(end))
    return sandbox.pgstrata("explain", archive, *times, *more)


def test_the_wait_and_the_blocker_are_named(sandbox, recorded):
    done = explain(sandbox, recorded, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["outcome"] in {"incident", "stalled", "unknown"}
    first = found["rows"][0]
    assert first["event"].startswith("Lock/")
    assert first["application"] == "shop"
    assert found["texts"][first["statement"]].startswith("update stock set pieces = pieces + ?")
    assert found["changes"][1]["value"] > 3
    blocker = found["blockers"][0]
    assert blocker["root"]["application"] == "night job"
    assert blocker["root"]["state"] == "idle in transaction"
    assert blocker["value"] > 2
    extra = found["changes"][1]["value"] - found["changes"][1]["reference"]
    assert sum(row["difference"] for row in found["rows"]) == pytest.approx(extra)


def test_the_answer_says_it_in_words_and_on_a_page(sandbox, recorded, tmp_path):
    page = tmp_path / "why.html"
    done = explain(sandbox, recorded, "--format", "text", "--report", page)
    assert done.returncode == 0, done.stderr
    words = " ".join(done.stdout.split())
    assert "a session of the application night job idle in its transaction" in words
    assert "Lock/" in words
    assert "update stock set pieces = pieces" in page.read_text()
    assert "<svg" in page.read_text()


def test_tables_and_what_holds_back_vacuum_are_recorded(sandbox, recorded):
    archive, _, _ = recorded
    done = sandbox.pgstrata("window", archive, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    tables = {each["name"]: each for each in found["relations"]}
    assert tables["public.stock"]["updated"] > 0
    assert any(each["table"] == "public.stock" for each in found["relations"] if each["name"].endswith("_pkey"))


def test_errors_in_the_servers_log_are_counted(sandbox, recorded):
    done = sandbox.pgstrata("explain", recorded[0], "--from", moment(recorded[1]), "--json")
    found = json.loads(done.stdout)
    assert "no_log" not in found["limits"], "its standard error goes to a file"
    errors = [event for event in found["window"]["events"] if event["kind"] == "errors"]
    assert sum(event["times"] for event in errors) == 1


def test_an_open_transaction_is_what_holds_back_vacuum(shop):
    words = [shop["psql"], "-X", "-q", "-d", dsn(shop, "watched")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, text=True, env={**CLEAN, "PGAPPNAME": "night job"}) as session:
        session.stdin.write("BEGIN; UPDATE stock SET pieces = pieces WHERE id = 20;\n")
        session.stdin.flush()
        deadline, rows = time.monotonic() + 30, []
        while not rows and time.monotonic() < deadline:
            rows = [
                row for row in ask(shop, "watched", horizon_statement()) if row[1] == "night job" and row[3] != "active"
            ]
        session.stdin.close()
    ((kind, _, pid, state, age, held),) = rows
    assert (kind, state) == ("session", "idle in transaction")
    assert int(pid) > 0
    assert int(age) >= 1
    assert int(held) >= 0


def test_no_constant_of_a_statement_reaches_the_archive(recorded, shop):
    archive, _, _ = recorded
    content = b"".join(path.read_bytes() for path in archive.iterdir())
    assert b"canary-constant" not in content
    assert b"secret note" not in content
    assert b"canary-pw" not in content


def test_the_recorder_changes_nothing_and_its_sessions_cannot_write(sandbox, shop, tmp_path):
    recorder = start(sandbox, shop, tmp_path / "archive", "--duration", "60s")
    assert "recording PostgreSQL" in recorder.stderr.readline()
    second = start(sandbox, shop, tmp_path / "archive", "--duration", "1s")
    _, err = second.communicate(timeout=60)
    assert second.returncode == 4
    assert "another recorder writes to this archive" in err
    query = "SELECT count(*), min(pid) FROM pg_stat_activity WHERE application_name = 'pgstrata'"
    sessions = ask(shop, "watched", query)
    assert sessions[0][0] == "1"
    ask(shop, "watched", f"SELECT pg_terminate_backend({sessions[0][1]})")
    told = [recorder.stderr.readline()]
    while told[-1] and "connected again after" not in told[-1]:
        told.append(recorder.stderr.readline())
    assert "connection lost: terminating connection due to administrator command" in told[-2]
    assert "connected again after" in told[-1]
    environ = Path(f"/proc/{recorder.pid}/environ").read_bytes() + Path(f"/proc/{recorder.pid}/cmdline").read_bytes()
    assert environ
    recorder.kill()
    recorder.communicate()
    deadline = time.monotonic() + 20
    while ask(shop, "watched", query)[0][0] != "0" and time.monotonic() < deadline:
        time.sleep(0.2)
    assert ask(shop, "watched", query)[0][0] == "0", "a killed recorder leaves no session"
    done = sandbox.pgstrata("explain", tmp_path / "archive")
    assert done.returncode in {0, 1}
    assert "Traceback" not in done.stderr


def test_without_rights_or_the_extension_the_recorder_says_what_it_cannot_see(sandbox, shop, tmp_path):
    ask(shop, "postgres", "CREATE ROLE looker LOGIN PASSWORD 'canary-pw-7391'")
    place = shop["dsn"].replace("user=boss", "user=looker")
    done = here(sandbox, "watch", place, "--archive", tmp_path / "a", "--duration", "2s")
    ask(shop, "postgres", "DROP ROLE looker")
    assert done.returncode == 0, done.stderr
    assert "GRANT pg_monitor" in done.stderr
    assert "the extension pg_stat_statements is not in this database" in done.stderr


def test_a_server_without_a_free_connection_is_told_and_waited_for(sandbox, shop, tmp_path):
    ask(shop, "postgres", "CREATE ROLE crowded LOGIN PASSWORD 'canary-pw-7391' IN ROLE pg_monitor CONNECTION LIMIT 1")
    place = dsn(shop, "watched").replace("user=boss", "user=crowded")
    query = "SELECT count(*), min(pid) FROM pg_stat_activity WHERE usename = 'crowded'"
    words = [sys.executable, "-m", "pgstrata", "watch", place, "--archive", str(tmp_path / "archive")]
    recorder = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=sandbox.environ)
    try:
        while "recording PostgreSQL" not in (told := recorder.stderr.readline()):
            assert told, "it ended before it began"
        ((sessions, pid),) = ask(shop, "watched", query)
        assert sessions == "1", "one connection is enough"
        ask(shop, "postgres", "ALTER ROLE crowded CONNECTION LIMIT 0")
        refused = here(sandbox, "watch", place, "--archive", tmp_path / "other", "--duration", "1s")
        ask(shop, "watched", f"SELECT pg_terminate_backend({pid})")
        while "connection lost" not in (told := recorder.stderr.readline()):
            assert told, "it ended instead of waiting"
        time.sleep(1.5)
        assert ask(shop, "watched", query)[0][0] == "0"
        ask(shop, "postgres", "ALTER ROLE crowded CONNECTION LIMIT 5")
        while "connected again after" not in (told := recorder.stderr.readline()):
            assert told, "it ended instead of waiting"
    finally:
        recorder.kill()
        recorder.communicate()
        deadline = time.monotonic() + 20
        while ask(shop, "watched", query)[0][0] != "0" and time.monotonic() < deadline:
            time.sleep(0.2)
        ask(shop, "postgres", "DROP ROLE crowded")
    assert refused.returncode == 1
    assert "too many connections for role" in refused.stderr
    assert "\n  -> " in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--from", "2020-01-01T10:00", "--to", "2020-01-01T11:00"), 1, "nothing is recorded from"),
        (("--from", "soon"), 2, "'soon' is not a time"),
        (("--format", "pdf"), 2, "'pdf' is not a valid format"),
    ],
)
def test_a_window_that_is_not_there_has_a_remedy(sandbox, recorded, arguments, code, said):
    done = sandbox.pgstrata("explain", recorded[0], *arguments)
    assert done.returncode == code
    assert said in done.stderr
    assert "\n  -> " in done.stderr


def test_no_archive_no_server_and_a_wrong_limit_have_remedies(sandbox, shop, tmp_path):
    for words, code, said in (
        (("explain", tmp_path), 1, "there is no archive in this folder"),
        (("watch", "host=/nowhere user=x", "--archive", tmp_path / "b"), 1, "check that the server runs"),
        (("watch", shop["dsn"], "--archive", tmp_path / "b", "--keep-size", "1MB"), 2, "at least 16MB"),
        (("watch", shop["dsn"], "--archive", tmp_path / "b", "--keep", "1s"), 2, "at least 1h"),
    ):
        done = here(sandbox, *words)
        assert done.returncode == code, done.stderr
        assert said in done.stderr
        assert "canary-pw" not in done.stdout + done.stderr
