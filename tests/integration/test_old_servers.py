"""Servers of majors that are no longer maintained are measured as the others are."""

import json
import re
import shutil

import pytest

pytestmark = [
    pytest.mark.server,
    pytest.mark.timeout(600),
    pytest.mark.skipif(shutil.which("mvn") is None, reason="this machine has no mvn"),
]

OLD_MAJORS = """
question = "What is between 9.6 and 13?"
blocks = 2
[common]
connection = "tcp"
[factors]
server = ["maven:9.6", "maven:13"]
[[cells]]
workload = "select-only"
scale = 1
clients = 1
run = "1s"
warmup = "0s"
"""


def test_majors_whose_compilers_differ_are_refused(sandbox):
    study = sandbox.root / "old"
    refused = sandbox.pgstrata("run", sandbox.file(OLD_MAJORS), "--study", study)
    assert refused.returncode != 0
    assert "different compilers" in refused.stderr
    assert "gcc (GCC) 4.4.7" in refused.stderr


@pytest.mark.soak("old-majors")
def test_two_old_majors_are_measured_once_their_compilers_may_differ(sandbox):
    file = sandbox.file(OLD_MAJORS + "[allow]\nmixed_compilers = true\n")
    done = sandbox.pgstrata("run", file, "--study", sandbox.root / "allowed")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "done: 4 of 4 runs" in done.stdout
    assert "Not enough blocks yet to compare maven:13 with maven:9.6" in done.stdout
    shown = json.loads(sandbox.pgstrata("show", sandbox.root / "allowed", "--json").stdout)
    for comparison in shown["comparisons"]:
        (doubt,) = [warning["text"] for warning in comparison["warnings"] if warning["code"] == "compilers_differ"]
        assert re.search(r" by gcc \(Ubuntu 7\.5.* -Os.* by gcc \(GCC\) 4\.4.* -O2", doubt)
    evidence = sandbox.root / "allowed" / "evidence"
    used = {path.read_text().split("\n")[0] for path in evidence.glob("b*/*/*/pgstat.after")}
    assert used == {"snapshot\t90600", "snapshot\t100000"}
