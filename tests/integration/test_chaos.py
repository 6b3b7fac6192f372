"""The short form of scripts/chaos.py: an experiment that changes its host is killed, and the host is as it was."""

import importlib.util
import os
import shutil
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "chaos.py"

pytestmark = [
    pytest.mark.server,
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may change a host like this"),
    pytest.mark.skipif(
        not all(map(shutil.which, ("sysctl", "losetup", "findmnt", "mkfs.ext4")))
        or not Path("/dev/loop-control").exists(),
        reason="needs procps, util-linux, e2fsprogs and loop devices",
    ),
]


@pytest.fixture
def chaos(shared_root):
    spec = importlib.util.spec_from_file_location("chaos", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    folder = shared_root / "chaos"
    folder.mkdir(mode=0o755)
    made = module.Chaos(folder, seed=11)
    made.prepare()
    return made


def test_after_kills_at_any_step_restore_leaves_the_host_as_it_was_and_no_run_is_lost(chaos):
    first = chaos.state()
    wrong = [found for _ in range(3) for found in chaos.round(first)[1]]
    assert wrong == []
