"""Clients added until throughput falls, on real servers whose script is slow beside more than two sessions."""

import json

import pytest

pytestmark = [pytest.mark.server, pytest.mark.timeout(600)]

SLOW_FROM_FOUR = """
SELECT pg_sleep(CASE WHEN count(*) > 3 THEN 0.1 ELSE 0.01 END)
FROM pg_stat_activity WHERE backend_type = 'client backend' AND datname = current_database();
"""
LADDER = """
question = "?"
blocks = 1
controls = ["same"]
[common]
server = "embedded"
[[cells]]
scripts = [{ file = "slow.sql" }]
scale = 1
clients = { from = 1, to = 8, steps = 4, until = "throughput falls" }
run = "2s"
warmup = "0s"
"""


def test_the_ladder_ends_where_throughput_falls_and_a_study_without_its_catalogue_keeps_that(sandbox):
    (sandbox.root / "slow.sql").write_text(SLOW_FROM_FOUR)
    study, file = sandbox.root / "study-ladder", sandbox.file(LADDER)
    done = sandbox.pgstrata("run", file, "--study", study)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "throughput has fallen in every environment" in " ".join((done.stdout + done.stderr).split())
    (found,) = json.loads(sandbox.pgstrata("show", study, "--json").stdout)["ladders"]
    assert found["cells"] == ["custom-s1-c1", "custom-s1-c2", "custom-s1-c4"]
    assert found["left_out"] == ["custom-s1-c8"]
    assert found["fallen"] is True
    assert len(sandbox.records(study)) == 2 * 3
    again = sandbox.pgstrata("run", file, "--study", study)
    assert again.returncode == 0, again.stdout + again.stderr
    assert len(sandbox.records(study)) == 2 * 3
    assert sandbox.pgstrata("reparse", study).returncode == 0
    text = " ".join(sandbox.pgstrata("show", study).stdout.split())
    assert "the ladder ends at 4 clients" in text
