"""Waits as a real server samples them by pg_wait_sampling."""

import gzip
import json
from pathlib import Path

import pytest

PREFIX = Path("/usr/lib/postgresql/15")
LIBRARY = PREFIX / "lib" / "pg_wait_sampling.so"
pytestmark = [
    pytest.mark.server,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not LIBRARY.exists(), reason=f"no {LIBRARY} here (Debian's postgresql-15-pg-wait-sampling)"),
]

EXPERIMENT = f"""
question = "What does waiting for the WAL cost?"
blocks = 2
baseline = "off"
interleave = "runs"
[common]
server = "prefix:{PREFIX}"
settings.shared_preload_libraries = "pg_wait_sampling"
[[environments]]
name = "off"
settings.synchronous_commit = "off"
[[environments]]
name = "on"
settings.synchronous_commit = "on"
[[cells]]
workload = "simple-update"
scale = 1
clients = 2
run = "2s"
warmup = "0s"
"""


def measure(sandbox, text, name):
    study = sandbox.root / f"study-{name}"
    done = sandbox.pgstrata("run", sandbox.file(text, f"{name}.toml"), "--study", study)
    assert done.returncode == 0, done.stdout + done.stderr
    return study


def explain(sandbox, study, *arguments):
    shown = sandbox.pgstrata("show", study, "--why", *arguments)
    assert shown.returncode == 0, shown.stderr
    return shown.stdout


def test_the_account_of_lone_runs_is_made_of_the_server_s_own_samples(shared_sandbox):
    study = measure(shared_sandbox, EXPERIMENT, "waits")
    (found,) = json.loads(explain(shared_sandbox, study, "--json"))["why"]["attributions"]
    origin = found["origin"]
    assert origin["source"] == "pg_wait_sampling"
    assert 60 < origin["hertz"] <= 101
    # two clients, four runs of two seconds, of which some tenths may go unseen at either end
    assert 0.6 < found["samples"] / (2 * 4 * 2 * origin["hertz"]) <= 1.05
    assert 0 < origin["statement_samples"] < found["samples"] / 4
    waits = {part["event"] for part in found["parts"]}
    assert "IO/WalSync" in waits
    assert sum(part["difference"] for part in found["parts"]) == pytest.approx(found["total"]["difference"])
    text = " ".join(explain(shared_sandbox, study).split())
    assert "by pg_wait_sampling at " in text
    assert "of pg_stat_activity at 10 Hz" in text
    kept = [gzip.decompress(path.read_bytes()) for path in study.glob("evidence/b*/*/*/waits.samples.gz")]
    assert len(kept) == 4
    assert not any(b"pgbench_accounts" in text for text in kept)
    records = shared_sandbox.records(study)
    assert not any(remark["code"].startswith("sampl") for record in records.values() for remark in record["remarks"])
    assert shared_sandbox.pgstrata("reparse", study).returncode == 0
    assert json.loads(explain(shared_sandbox, study, "--json"))["why"]["attributions"] == [found]
