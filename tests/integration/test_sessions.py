"""What sessions do, sampled from a real server: nothing of what was asked for is left in the samples but its shape."""

import os
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import pytest

from pgstrata.collectors.sessions.counts import parse_sessions
from pgstrata.collectors.sessions.parse import LOOK, known_names, parse_samples
from pgstrata.collectors.sessions.sampler import render_script
from pgstrata.collectors.statements import statements_for
from pgstrata.model.activity import SessionState
from pgstrata.ports.collector import Window
from pgstrata.testing_samplers import holds_at_best

pytestmark = [pytest.mark.server, pytest.mark.timeout(120)]

SECRET = "hunter2"
SECRETS = f"""SELECT pg_sleep(0.4), 70707, -7.0707e1, '{SECRET}', 'it''s {SECRET}', E'it\\'s {SECRET}', $$ {SECRET} $$,
    $a${SECRET}$a$, U&'{SECRET}', B'0111', X'70707', "it's"."c -- " /* {SECRET} */ -- {SECRET}
    FROM (SELECT 1 AS "c -- ") "it's" WHERE '{SECRET}' <> 'c:\\' AND 'x' <> '{SECRET}'"""
# of E'it\'s' nobody knows where it ends without the server's settings: what follows is masked as well
CUT = f"SELECT pg_sleep(0.4), '{SECRET * 300}'"


def psql(server, *arguments, name="pgbench"):
    command = [server["psql"], "-X", "-q", "-At", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-d", server["dsn"], *arguments]
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PGAPPNAME": name, "LC_ALL": "C"},
    )


def ended(process):
    output, errors = process.communicate()
    assert process.returncode == 0, errors
    return output


def sample(server, folder, *statements, version=180000, reconnects=0, application="pgbench"):
    """What is sampled while a session of an application works through statements."""
    script = folder / "sample.sql"
    statement = statements_for("pgstrata.collectors.sessions", "sample", version)[0][1]
    script.write_text(render_script(statement, application, reconnects=reconnects))
    watching = psql(server, "-f", script, name="pgstrata")
    try:
        time.sleep(0.3)
        ended(psql(server, *(word for text in statements for word in ("-c", text)), name=application))
    finally:
        watching.terminate()
        output, errors = watching.communicate()
    assert not errors
    return output


@pytest.mark.parametrize("version", [90600, 100000, 130000, 140000])
def test_no_constant_leaves_the_server_however_it_is_quoted(running_server, tmp_path, version):
    found = sample(running_server, tmp_path, SECRETS, CUT, version=version)
    assert SECRET.encode() not in found
    assert not any(b"707" in line.rpartition(b"\t")[2] for line in found.splitlines()[1:])
    queries = {row.query for row in parse_samples(found) if row.ours}
    assert any(query.startswith("select pg_sleep(?), ?, ?, ?, ?, ?") for query in queries)
    assert any(query == "select pg_sleep(?), ?" for query in queries)


@pytest.mark.parametrize("version", [90600, 100000, 130000, 140000])
def test_a_look_that_sees_no_session_is_known_where_clients_connect_for_each_transaction(
    running_server, tmp_path, version
):
    def look():
        # a name of its own: other tests of this server may have left sessions of pgbench
        nonlocal found
        found = sample(
            running_server, tmp_path, "SELECT pg_sleep(0.4)", version=version, reconnects=3, application="connecting"
        )
        rows = list(parse_samples(found))
        looks = {row.time for row in rows if row.kind == LOOK}
        assert {row.pid for row in rows if row.kind == LOOK} <= {3}
        # before the session and after it there was none
        return looks > {row.time for row in rows if row.ours}

    found = b""
    assert holds_at_best(look)
    window = Window(
        seconds=0.4, transactions=1, client_cpu=0, postmaster_pid=None, transport_pids=(), server_version=version
    )
    counted = {count.state: count.samples for count in parse_sessions(found, window).sessions}
    assert counted[SessionState.CONNECTING] == 2 * sum(
        samples for state, samples in counted.items() if state is not SessionState.CONNECTING
    )


@pytest.mark.parametrize("version", [90600, 100000, 130000, 140000])
def test_nothing_is_looked_at_before_what_asking_stirred_up_has_settled(running_server, tmp_path, version):
    script = render_script(statements_for("pgstrata.collectors.sessions", "sample", version)[0][1], "pgbench")
    (tmp_path / "script").write_text(
        script.replace("PREPARE sample AS", "EXPLAIN (COSTS off)").partition(";\nEXECUTE")[0] + ";\n"
    )
    plan = ended(psql(running_server, "-f", tmp_path / "script")).decode()
    assert plan.index("One-Time Filter") < plan.index("Function Scan on pg_stat_get_activity")


def test_a_sleep_is_a_wait_and_a_computation_is_running(running_server, tmp_path):
    busy = "SELECT count(*) FROM generate_series(1, 4000000) n WHERE n % 7 = 3"
    window = Window(
        seconds=1.2, transactions=2, client_cpu=0, postmaster_pid=None, transport_pids=(), server_version=180000
    )

    def look():
        found = parse_sessions(sample(running_server, tmp_path, "SELECT pg_sleep(0.6)", busy), window)
        seen = {(count.state, count.event, count.query.split("(")[0]): count.samples for count in found.sessions}
        asleep = seen.get((SessionState.WAITING, "PgSleep", "select pg_sleep"), 0)
        running = (SessionState.RUNNING, SessionState.AWAKE, SessionState.PASSING)
        return 4 <= asleep <= 8 and sum(seen.get((state, "", "select count"), 0) for state in running) >= 1

    assert holds_at_best(look)


def test_the_names_of_wait_events_are_those_that_the_newest_server_prints(running_server):
    rows = ended(psql(running_server, "-c", "SELECT type, name FROM pg_wait_events")).decode()
    printed = {tuple(line.split("\t")) for line in rows.splitlines()}
    assert {name for name in known_names().values() if name[1] != "*"} <= printed


def test_a_session_that_blocks_is_found_at_the_end_of_the_chain(running_server, tmp_path):
    hold = "BEGIN; LOCK TABLE chained; SELECT pg_sleep(2); COMMIT"
    ended(psql(running_server, "-c", "CREATE TABLE chained (a int)"))
    try:
        holder = psql(running_server, "-c", hold, name="holder")
        time.sleep(0.2)
        found = sample(running_server, tmp_path, "DELETE FROM chained WHERE a = 5")
        ended(holder)
    finally:
        ended(psql(running_server, "-c", "DROP TABLE chained"))
    window = Window(
        seconds=1, transactions=1, client_cpu=0, postmaster_pid=None, transport_pids=(), server_version=180000
    )
    # most often seen first: a sample between the holder's end and the waiter's awakening names no blocker
    wait, *_ = [count for count in parse_sessions(found, window).sessions if count.wait_type == "Lock"]
    assert (wait.event, wait.query) == ("relation", "delete from chained where a = ?")
    assert wait.blocker == "begin; lock table chained; select pg_sleep(?); commit"


@pytest.mark.parametrize("version", [130000, 140000])
def test_a_session_that_sleeps_without_an_event_is_told_from_one_that_computes(running_server, version):
    if not _kernel_tells():
        pytest.skip("this kernel does not tell where a process sleeps")
    with tempfile.TemporaryDirectory(prefix="pgstrata-test-", dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        pipe = folder / "pipe"
        os.mkfifo(pipe)
        pipe.chmod(0o644)
        # who reads it sleeps until somebody comes to write; nobody is asked who has just come
        writing = threading.Timer(3.0, lambda: pipe.open("wb").close())
        writing.start()
        found = sample(
            running_server,
            folder,
            "CREATE TEMP TABLE piped (a text)",
            "SELECT pg_sleep(1.2)",
            f"COPY piped FROM '{pipe}'",
            "SELECT count(*) FROM generate_series(1, 3000) a, generate_series(1, 4000) b",
            version=version,
        )
        writing.join()
    window = Window(
        seconds=5.0, transactions=1, client_cpu=0.0, postmaster_pid=None, transport_pids=(), server_version=version
    )
    seen = {
        (count.state, name)
        for count in parse_sessions(found, window).sessions
        for name in ("copy", "generate_series")
        if name in count.query and count.samples >= 3
    }
    assert seen == {(SessionState.ASLEEP, "copy"), (SessionState.AWAKE, "generate_series")}


@pytest.mark.parametrize("version", [90600, 100000, 130000, 140000])
def test_a_user_without_rights_samples_its_own_sessions(running_server, tmp_path, version):
    ended(psql(running_server, "-c", "CREATE ROLE plain LOGIN PASSWORD 'plain'"))
    try:
        plain = {
            **running_server,
            "dsn": running_server["dsn"].replace("boss", "plain").replace("canary-pw-7391", "plain"),
        }
        found = sample(plain, tmp_path, "SELECT pg_sleep(0.5)", version=version)
    finally:
        ended(psql(running_server, "-c", "DROP ROLE plain"))
    assert "PgSleep" in {each.event for each in parse_samples(found) if each.ours}


def _kernel_tells():
    process = subprocess.Popen(["sleep", "5"])
    try:
        time.sleep(0.1)
        return Path(f"/proc/{process.pid}/wchan").read_text() not in {"", "0"}
    except OSError:
        return False
    finally:
        process.kill()
        process.wait()
