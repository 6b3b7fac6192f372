"""Where tests keep data and studies: in memory where there is much of it, because what they prove needs no disk."""

import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

_MEMORY = Path("/dev/shm")
# what all processes of `make test` hold at a time, and as much again for the servers
_ROOM = 8 << 30


def parent_folder():
    """The folder below which there is room for the data of all tests."""
    try:
        free = shutil.disk_usage(_MEMORY).free
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        available = 1024 * next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        return Path("/tmp")
    return _MEMORY if min(free, available) > _ROOM else Path("/tmp")


@contextmanager
def working_folder(prefix="pgstrata-test-"):
    """A folder with a short name that servers may enter; it goes away."""
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent_folder()))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
