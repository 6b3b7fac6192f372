"""What tests that were killed left behind: folders, namespaces and bridges in whose names stands who made them."""

import os
import re
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

PARENTS = (Path("/dev/shm"), Path("/tmp"))
_FOLDER = re.compile(r"(?:pgstrata-test|pgstrata-far|pgs)-(?P<pid>\d+)-\w{8}")
_NAMESPACE = re.compile(r"pgstrata-far-(?P<pid>\d+)-\d+-\d+")
_LINK = re.compile(r"pg(?P<pid>\d+)-\d+(?:v\d+)?")


def sweep(parents=PARENTS):
    """Remove what belongs to processes that are no more, and nothing else."""
    mounted = {line.split()[1] for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines()}
    for folder in (path for parent in parents if parent.is_dir() for path in parent.iterdir()):
        # what is mounted below a folder may be anybody's
        below = any(Path(name).is_relative_to(folder) for name in mounted)
        if _is_left(_FOLDER, folder.name) and not folder.is_symlink() and not below:
            shutil.rmtree(folder, ignore_errors=True)
    if os.geteuid() == 0 and shutil.which("ip"):
        _sweep_networks()


def _sweep_networks():
    for namespace in [line.split()[0] for line in _ip("netns", "list").splitlines() if line.strip()]:
        if _is_left(_NAMESPACE, namespace):
            for pid in _ip("netns", "pids", namespace).split():
                with suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            _ip("netns", "del", namespace)
    for path in Path("/sys/class/net").iterdir():
        if _is_left(_LINK, path.name):
            _ip("link", "del", path.name)


def _is_left(pattern, name):
    found = pattern.fullmatch(name)
    return bool(found) and not Path("/proc", found["pid"]).exists()


def _ip(*words):
    return subprocess.run(["ip", *words], check=False, capture_output=True, text=True).stdout
