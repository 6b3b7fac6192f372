"""Data checksums as a factor: both arms have the same physical pages."""

import pytest

from pgstrata.store.load import load_study

pytestmark = [pytest.mark.server, pytest.mark.timeout(600)]

CHECKSUMS = """
question = "What do checksums cost?"
blocks = 1
[factors]
checksums = [true, false]
[[cells]]
workload = "simple-update"
scale = 3  # no other test has data of this size
clients = 2
rate = 50
run = "1s"
warmup = "0s"
"""


def test_both_arms_have_the_same_pages_and_say_what_they_do_with_them(sandbox):
    done = sandbox.pgstrata("run", sandbox.file(CHECKSUMS), "--study", "study-checksums")
    assert done.returncode == 0, done.stderr
    study = load_study(sandbox.root / "study-checksums")
    facts = {name: found.facts["initdb.data_checksums"] for name, found in study.environments.items()}
    assert sorted(facts.values()) == ["off", "on"]
    files = [
        {path.relative_to(folder): path for path in (folder / "data" / "base").glob("*/*") if path.is_file()}
        for folder in (sandbox.root / "data" / "datasets").glob("pgbench-s3-*")
    ]
    first, second = files
    assert first.keys() == second.keys()
    assert all(path.read_bytes() == second[name].read_bytes() for name, path in first.items())
