"""What tests of file systems on loop devices need, and what they must not leave."""

import os
import shutil
from pathlib import Path

import pytest

MISSING = [name for name in ("mkfs.ext4", "mkfs.xfs", "mkfs.btrfs", "losetup") if not shutil.which(name)]
as_root = [
    pytest.mark.root,
    pytest.mark.skipif(
        os.getuid() != 0 or not Path("/dev/loop-control").exists(), reason="needs root and loop devices"
    ),
    pytest.mark.skipif(bool(MISSING), reason=f"{MISSING} are missing"),
]


def left_over(folder):
    """Whatever of a folder is still mounted, a loop device, or a file."""
    mounts = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if f" {folder}/" in line]
    loops = [path for path in Path("/sys/block").glob("loop*/loop/backing_file") if path.read_text().startswith(folder)]
    return [*mounts, *loops, *Path(folder).iterdir()]
