"""The short form of soak/chaos.py: an experiment that changes its host is killed, and the host is as it was."""

import os
import shutil
import tempfile
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from chaos import Chaos
from chaos_far import FarChaos

import sshd

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
def prepared():
    """Makes a chaos that can begin, in a folder of its own; on a disk, which loop devices read past the page cache."""
    with ExitStack() as stack:
        root = Path(tempfile.mkdtemp(prefix="pgstrata-chaos-", dir="/tmp"))
        stack.callback(shutil.rmtree, root, ignore_errors=True)
        root.chmod(0o755)

        def prepare(kind, seed):
            folder = root / kind.__name__
            folder.mkdir(mode=0o755)
            chaos = stack.enter_context(closing(kind(folder, seed)))
            chaos.prepare(blocks=1)
            return chaos

        yield prepare


def go_round(chaos, rounds):
    """What was wrong in so many rounds."""
    first = chaos.state()
    return [found for _ in range(rounds) for found in chaos.round(first)[1]]


def test_after_kills_at_any_step_restore_leaves_the_host_as_it_was_and_no_run_is_lost(prepared):
    assert go_round(prepared(Chaos, 11), 2) == []


@pytest.mark.soak("two-hosts")
@pytest.mark.skipif(bool(sshd.why_not()), reason=sshd.why_not())
def test_after_a_kill_both_hosts_are_restored_from_here(prepared):
    assert go_round(prepared(FarChaos, 11), 1) == []
