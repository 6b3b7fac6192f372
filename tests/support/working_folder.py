"""Where tests keep data and studies: in memory where there is much of it, because what they prove needs no disk."""

import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

_MEMORY = Path("/dev/shm")
# what all processes of `make test` hold at a time, and as much again for the servers
_ROOM = 8 << 30


def parent_folder():
    """The folder below which there is room for the data of all tests, and programs may be run."""
    try:
        if os.statvfs(_MEMORY).f_flag & os.ST_NOEXEC:
            return Path("/tmp")
        free = shutil.disk_usage(_MEMORY).free
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        available = 1024 * next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        return Path("/tmp")
    return _MEMORY if min(free, available) > _ROOM else Path("/tmp")


def make_folder(prefix):
    """A folder in whose name stands who made it, so that `leftovers` knows when nobody needs it any more."""
    return Path(tempfile.mkdtemp(prefix=f"{prefix}{os.getpid()}-", dir=parent_folder()))


@contextmanager
def working_folder(prefix="pgstrata-test-"):
    """A folder with a short name that servers may enter; it goes away."""
    folder = make_folder(prefix)
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
