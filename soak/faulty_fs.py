"""A file system that shows a folder and fails on demand, by FUSE; `FaultyFs` mounts it and says when it fails.

Each operation that changes something is counted. From a given one on, or at that one alone, it fails as disks do, or
the process that is tested is killed just before or after it. Needs root, fuse3 and mfusepy.

    python faulty_fs.py FOLDER MOUNTPOINT        orders on standard input: "arm COUNT EFFECT PID", "disarm"
"""

# ruff: noqa: INP001, T201, PTH  part of a script; what is asked of a file system is numbers and paths as text

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import Any, Final


class Effect(StrEnum):
    """What happens: a full or read-only disk stays so until `disarm`, all else happens once."""

    NO_SPACE = "ENOSPC"
    INPUT_OUTPUT = "EIO"
    READ_ONLY = "EROFS"
    KILLED_BEFORE = "killed-before"
    KILLED_AFTER = "killed-after"


ALLOCATING: Final = frozenset({"create", "write", "mkdir", "link", "symlink", "rename"})
CHANGING: Final = ALLOCATING | {"truncate", "open", "fsync", "unlink", "rmdir", "chmod", "chown"}
CONCERNS: Final = dict.fromkeys(Effect, CHANGING) | {
    Effect.NO_SPACE: ALLOCATING,
    Effect.INPUT_OUTPUT: CHANGING - {"unlink", "rmdir"},
}
LASTING: Final = {Effect.NO_SPACE, Effect.READ_ONLY}
_PATIENCE: Final = 20.0


def sum_concerned(seen: Counter[str], effect: Effect) -> int:
    """How many of the operations that were seen an effect concerns."""
    return sum(seen[operation] for operation in CONCERNS[effect])


def why_not() -> str:
    """Why there can be no such file system here, or nothing."""
    if os.geteuid() != 0 or not Path("/dev/fuse").exists():
        return "needs root and /dev/fuse"
    try:
        import mfusepy  # noqa: F401, PLC0415
    except (ImportError, OSError) as error:
        return f"needs mfusepy and libfuse ({error})"
    probe = subprocess.run(["unshare", "--mount", "mount", "-t", "tmpfs", "probe", "/mnt"], check=False, stderr=-3)
    return "needs the right to mount a file system" if probe.returncode else ""


class FaultyFs:
    """A mounted one: what is below `root` is seen below `mount`."""

    def __init__(self, root: Path, mount: Path) -> None:
        self.root, self.mount = root, mount
        self._server = subprocess.Popen(
            [sys.executable, __file__, str(root), str(mount)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip

    @classmethod
    @contextmanager
    def mounted(cls, root: Path, mount: Path) -> Iterator[FaultyFs]:
        """Mounted as long as that lasts."""
        found = cls(root, mount)
        try:
            deadline = time.monotonic() + _PATIENCE
            while not os.path.ismount(mount):
                if found._server.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"cannot mount {mount}")
                time.sleep(0.01)
            yield found
        finally:
            subprocess.run(["umount", "--lazy", str(mount)], check=False)
            found._server.kill()
            found._server.communicate()

    def arm(self, count: int, effect: Effect, pid: int) -> None:
        """Fail at the operation with that number of those that the effect concerns, counted from now on."""
        self._order(f"arm {count} {effect} {pid}")

    def disarm(self) -> Counter[str]:
        """Be a good file system again; how many operations of each kind there were since `arm`."""
        return Counter(json.loads(self._order("disarm")))

    def _order(self, words: str) -> str:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        print(words, file=self._server.stdin, flush=True)
        return self._server.stdout.readline()


class _Orders:
    """Which operation fails; shared by the threads of the server."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._effect: Effect | None = None
        self._at = self._pid = self._concerned = 0
        self._seen: Counter[str] = Counter()

    def arm(self, at: int, effect: Effect | None, pid: int) -> Counter[str]:
        with self._lock:
            before = self._seen
            self._at, self._effect, self._pid = at, effect, pid
            self._concerned, self._seen = 0, Counter()
        return before

    @property
    def full(self) -> bool:
        """Whether there is no space any more."""
        return self._effect is Effect.NO_SPACE and 0 < self._at <= self._concerned

    def fail(self, operation: str, path: str) -> bool:
        """Raise OSError if it is to fail; whether to kill when it is done."""
        # SQLite maps this file into memory, and the kernel writes it back when it likes
        if path.endswith("-shm"):
            return False
        with self._lock:
            self._seen[operation] += 1
            effect = self._effect
            if effect is None or operation not in CONCERNS[effect]:
                return False
            self._concerned += 1
            hit = self._concerned >= self._at if effect in LASTING else self._concerned == self._at
        if not hit or not self._at:
            return False
        if effect is Effect.KILLED_AFTER:
            return True
        if effect is Effect.KILLED_BEFORE:
            self.kill()
            raise OSError(errno.EINTR, "killed")
        raise OSError(getattr(errno, effect), os.strerror(getattr(errno, effect)))

    def kill(self) -> None:
        """Kill the process that is tested."""
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)


def serve(root: str, mount: str) -> None:  # noqa: C901 - a class with many methods
    """Serve until unmounted."""
    from mfusepy import FUSE, Operations, fuse_get_context  # noqa: PLC0415

    orders = _Orders()

    def take_orders() -> None:
        for line in sys.stdin:
            word, *more = line.split()
            if word == "arm":
                orders.arm(int(more[0]), Effect(more[1]), int(more[2]))
                print("armed", flush=True)
            else:
                print(json.dumps(orders.arm(0, None, 0)), flush=True)

    def changing(name: str, path: str, action: Any, *arguments: Any) -> Any:
        kills = orders.fail(name, path)
        try:
            return action(*arguments)
        finally:
            if kills:
                orders.kill()

    class Loopback(Operations):  # type: ignore[misc]
        """Everything as it is in the folder, for whoever asks."""

        use_ns = True

        def _own(self, path: str) -> None:
            uid, gid, _ = fuse_get_context()
            if uid:
                os.chown(path, uid, gid, follow_symlinks=False)

        def getattr(self, path: str, fh: int | None = None) -> dict[str, Any]:
            found = os.fstat(fh) if fh else os.lstat(root + path)
            return {key: getattr(found, key) for key in dir(found) if key.startswith("st_") and "time" not in key} | {
                key: getattr(found, f"{key}_ns") for key in ("st_atime", "st_mtime", "st_ctime")
            }

        def readdir(self, path: str, _fh: int) -> list[Any]:
            return [".", "..", *((each.name, {"st_ino": each.inode()}, 0) for each in os.scandir(root + path))]

        def readlink(self, path: str) -> str:
            return str(Path(root + path).readlink())

        def statfs(self, path: str) -> dict[str, int]:
            found = os.statvfs(root + path)
            free = {"f_bavail": 0, "f_bfree": 0} if orders.full else {}
            return {key: getattr(found, key) for key in dir(found) if key.startswith("f_") and key != "f_fsid"} | free

        def open(self, path: str, flags: int) -> int:
            kept = flags & ~(os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_DIRECT)
            writes = flags & (os.O_WRONLY | os.O_RDWR)
            return int(changing("open", path if writes else "-shm", os.open, root + path, kept))

        def create(self, path: str, mode: int, flags: int = 0) -> int:  # noqa: ARG002 - the flags of its opening
            kept = os.O_RDWR | os.O_CREAT | os.O_EXCL
            fh = int(changing("create", path, os.open, root + path, kept, mode))
            self._own(root + path)
            return fh

        def read(self, _path: str, size: int, offset: int, fh: int) -> bytes:
            return os.pread(fh, size, offset)

        def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
            return int(changing("write", path, os.pwrite, fh, data, offset))

        def truncate(self, path: str, length: int, fh: int | None = None) -> None:
            changing("truncate", path, os.truncate, fh or root + path, length)

        def fsync(self, path: str, _datasync: int, fh: int) -> None:
            changing("fsync", path, os.fsync, fh)

        def fsyncdir(self, path: str, _datasync: int, _fh: int) -> None:
            changing("fsync", path, os.sched_yield)

        def release(self, _path: str, fh: int) -> None:
            os.close(fh)

        def mkdir(self, path: str, mode: int) -> None:
            changing("mkdir", path, os.mkdir, root + path, mode)
            self._own(root + path)

        def rmdir(self, path: str) -> None:
            changing("rmdir", path, os.rmdir, root + path)

        def unlink(self, path: str) -> None:
            changing("unlink", path, os.unlink, root + path)

        def rename(self, old: str, new: str) -> None:
            changing("rename", new, os.rename, root + old, root + new)

        def link(self, target: str, source: str) -> None:
            changing("link", target, os.link, root + source, root + target)

        def symlink(self, target: str, source: str) -> None:
            changing("symlink", target, os.symlink, source, root + target)
            self._own(root + target)

        def chmod(self, path: str, mode: int) -> None:
            changing("chmod", path, os.chmod, root + path, mode)

        def chown(self, path: str, uid: int, gid: int) -> None:
            changing("chown", path, os.chown, root + path, uid, gid)

        def utimens(self, path: str, times: tuple[int, int] | None = None) -> None:
            os.utime(root + path, ns=times, follow_symlinks=False)

    os.umask(0)
    threading.Thread(target=take_orders, daemon=True).start()
    FUSE(
        Loopback(), mount, foreground=True, allow_other=True, default_permissions=True, use_ino=True,
        hard_remove=True, attr_timeout=0, entry_timeout=0, negative_timeout=0,
    )  # fmt: skip


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2])
