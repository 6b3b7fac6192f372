"""The short form of soak/faults.py: some faults of a file system beneath studies, ledgers and datasets."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from faulty_fs import why_not

ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.root, pytest.mark.company, pytest.mark.skipif(bool(why_not()), reason=why_not())]


@pytest.mark.parametrize("scenario", ["resume", "ledger"])
def test_after_a_fault_everything_goes_on(scenario):
    words = [sys.executable, ROOT / "soak" / "faults.py", "--only", scenario, "--every", "60", "--live", "0"]
    environ = {**os.environ, "PYTHONPATH": f"{ROOT / 'tests' / 'support'}:{ROOT / 'soak'}"}
    done = subprocess.run(words, env=environ, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "; 0 left something wrong" in done.stdout
