"""What a real server counts each second while something writes."""

import os
import subprocess
import time

import pytest

from pgstrata.collectors.pgstat.seconds import CountersSampler, render_script
from pgstrata.ports.collector import Window

pytestmark = [pytest.mark.server, pytest.mark.timeout(60)]

POSITION = "SELECT pg_current_wal_insert_lsn() - '0/0'"
WINDOW = Window(seconds=10, transactions=1, client_cpu=0, postmaster_pid=None, transport_pids=(), server_version=180000)


def psql(server, *arguments):
    command = [server["psql"], "-X", "-q", "-At", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-d", server["dsn"], *arguments]
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PGAPPNAME": "pgstrata", "LC_ALL": "C"},
    )


def parse(samples):
    return CountersSampler().parse({"pgstat.samples": samples}, WINDOW).series


def ask(server, statement):
    output, errors = psql(server, "-c", statement).communicate()
    assert not errors
    return output.decode().strip()


WRITE = "INSERT INTO written SELECT n, repeat('x', 100) FROM generate_series(1, 2000) n;\n\\! sleep 0.1\n"


def test_a_load_that_writes_is_seen_second_by_second(running_server, tmp_path):
    script, load = tmp_path / "seconds.sql", tmp_path / "load.sql"
    script.write_text(render_script(180000))
    load.write_text(25 * WRITE)
    ask(running_server, "CREATE TABLE written (a int, b text)")
    begin = int(ask(running_server, POSITION))
    watching = psql(running_server, "-f", script)
    try:
        time.sleep(0.3)
        assert not psql(running_server, "-f", load).communicate()[1]
        time.sleep(1.2)
    finally:
        watching.terminate()
        samples, errors = watching.communicate()
        end = int(ask(running_server, POSITION))
        ask(running_server, "DROP TABLE written")
    assert not errors
    found = {series.metric: series.values for series in parse(samples)}
    assert len(found["wal_bytes"]) >= 3
    # how fast it is done depends on what else the machine does
    assert sum(wal > 1e5 for wal in found["wal_bytes"]) >= 2
    # a stretch is as long as a second, and a little longer
    assert 0.9 * (end - begin) < sum(found["wal_bytes"]) <= 1.01 * (end - begin)
    assert 0.9 * 50_000 < sum(found["rows_changed"]) <= 1.01 * 50_000
    for name in ("commits", "blocks_hit", "wal_records"):
        assert max(found[name]) > 0
