"""The second driver on real servers: a small experiment, and what is said where sysbench cannot do it."""

import os
import shutil
import time
from pathlib import Path

import pytest

from pgstrata.store.load import load_study

pytestmark = [pytest.mark.server, pytest.mark.timeout(600)]
needs_sysbench = pytest.mark.skipif(shutil.which("sysbench") is None, reason="sysbench is not installed here")

WAYS = """
question = "What does TCP cost?"
blocks = 2
[factors]
connection = ["socket", "tcp"]
[common]
server = "embedded"
[[cells]]
workload = "{workload}"
scale = 2
clients = 2
run = "3s"
warmup = "1s"
"""


@needs_sysbench
def test_an_experiment_is_driven_run_by_run_and_every_run_is_complete(sandbox):
    file = sandbox.file(WAYS.format(workload="oltp-read-write"))
    done = sandbox.pgstrata("run", file, "--study", "study-sysbench")
    assert done.returncode == 0, done.stdout + done.stderr
    study = load_study(sandbox.root / "study-sysbench", series=True, sessions=True)
    assert len(study.runs) == 4
    for run in study.runs:
        assert run.value("tps") > 0
        assert run.value("transactions") == pytest.approx(3 * run.value("tps"), rel=0.2)
        assert run.value("latency_mean") == pytest.approx(2 / run.value("tps"), rel=0.2)
        assert run.value("client_cpu_per_tx") > 0
        assert "tps" in {series.metric for series in run.series}
        # sessions are known by their name
        assert sum(count.samples for count in run.sessions) > 0
    records = sandbox.records(sandbox.root / "study-sysbench")
    assert all(record["facts"]["driver.version"].startswith("1.") for record in records.values())
    assert all(float(record["facts"]["client.ceiling"]) > 0 for record in records.values())
    evidence = sandbox.root / "study-sysbench" / "evidence"
    assert len(list(evidence.glob("b*/*/*/sysbench.out"))) == 4
    assert not sandbox.wait_for_silence()
    assert sandbox.pgstrata("reparse", "study-sysbench").returncode == 0
    assert sandbox.pgstrata("show", "study-sysbench").returncode == 0


@needs_sysbench
def test_a_password_reaches_it_by_a_file_alone(sandbox, reached_server):
    dsn = f"host=127.0.0.1 port={reached_server['port']} user=boss password=canary-pw-7391 dbname=postgres"
    file = sandbox.file(
        f"""
question = "?"
blocks = 1
controls = ["same"]
[common]
server = "dsn:{dsn}"
[[cells]]
workload = "oltp-point-select"
scale = 1
clients = 2
rate = 50
run = "2s"
warmup = "0s"
"""
    )
    started = sandbox.start("run", file, "--study", "study-secret")
    seen = 0
    while started.poll() is None:
        seen += look_at_sysbench(b"canary-pw-7391")
        time.sleep(0.02)
    said = started.communicate()[0]
    assert started.returncode == 0, said
    assert seen
    assert "canary-pw-7391" not in said
    assert len(sandbox.records(sandbox.root / "study-secret")) == 2


def look_at_sysbench(secret):
    """How many processes of sysbench there are; none has the secret among its words or in its environment."""
    seen = 0
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and (folder / "comm").read_text().strip() == "sysbench":
                words, environ = (folder / "cmdline").read_bytes(), (folder / "environ").read_bytes()
            else:
                continue
        except OSError:
            continue
        assert secret not in words + environ
        seen += 1
    return seen


def test_a_sysbench_without_postgresql_is_named_before_anything_is_built(sandbox):
    fake = sandbox.root / "bin" / "sysbench"
    fake.parent.mkdir()
    fake.write_text(
        "#!/bin/sh\nprintf 'Usage:\\n  sysbench [options]...\\n\\n'\n"
        "printf 'Compiled-in database drivers:\\n  mysql - MySQL driver\\n\\n'\n"
    )
    fake.chmod(0o755)
    file = sandbox.file(WAYS.format(workload="oltp-point-select").replace("scale = 2", "scale = 3"))
    path = {"PATH": f"{fake.parent}:{os.environ['PATH']}"}
    done = sandbox.pgstrata("run", file, "--study", "study-mysql", environ=path)
    assert done.returncode == 4, done.stdout + done.stderr
    assert "without its PostgreSQL driver" in done.stderr
    assert str(fake) in done.stderr
    assert "pgsql" in done.stderr
    assert not list((sandbox.root / "data").glob("**/sbtest-s3*"))
    assert not sandbox.records(sandbox.root / "study-mysql")
