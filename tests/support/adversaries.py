"""Users who attack whatever root might use: processes of theirs exchange, link, rename and make files beforehand.

Each is a process of root's that has become that user for good. It looks through the folders that it may change, over and
over, and for a moment puts a link to something of root's into the place of a file or folder, or of a name that is about
to be made; then it puts back what was there, so that what is attacked goes on.
"""

# ruff: noqa: PTH108, PTH112, PTH113, PTH208, PTH211
# An adversary is as fast as can be.

import contextlib
import ctypes
import os
import pwd
import random
import signal
import stat
import time
from dataclasses import dataclass, field
from pathlib import Path

_EXCHANGE = 2
_RENAMEAT2 = 316 if os.uname().machine == "x86_64" else 276
_AT_FDCWD = -100
_libc = ctypes.CDLL(None, use_errno=True)
# Names that pgstrata makes, or made once, beside its files.
_FORESEEN = (
    "pgstrata.lock", "pgstrata.marker", "report.html", "report.html.new", "plan.json", ".plan.json.new",
    ".experiment.toml.new", "catalogue.sqlite", "catalogue.sqlite-wal", ".pgstrata-doctor", "image", "mount", "data",
    "installation", "build.log", "pgstrata.lock.new",
)  # fmt: skip
_TRAP = "#!/bin/sh\nid -u >>{log}\nexit 1\n"


def exchange(one, other):
    """Both names at once, as renameat2(2) does; whether it was possible."""
    names = os.fsencode(one), os.fsencode(other)
    return _libc.syscall(_RENAMEAT2, _AT_FDCWD, names[0], _AT_FDCWD, names[1], _EXCHANGE) == 0


@dataclass
class Canaries:
    """Files of root's that must stay as they are: content, owner, mode and time."""

    folder: Path
    before: dict = field(default_factory=dict)

    def make(self):
        self.folder.mkdir(mode=0o755)
        for name, mode in (("secret", 0o600), ("public", 0o644), ("program", 0o755)):
            (self.folder / name).write_text(f"root's own {name}\n")
            (self.folder / name).chmod(mode)
        (self.folder / "closed").mkdir(mode=0o700)
        (self.folder / "closed" / "key").write_text("root's own key\n")
        (self.folder / "inner").mkdir(mode=0o755)
        (self.folder / "inner" / "file").write_text("root's own file\n")
        self.before = self.look()

    def look(self):
        found = {}
        for path in (self.folder, *sorted(self.folder.rglob("*"))):
            facts = path.lstat()
            content = path.read_bytes() if stat.S_ISREG(facts.st_mode) else b""
            found[str(path)] = (oct(facts.st_mode), facts.st_uid, facts.st_gid, content[:100], len(content))
        return found

    def changed(self):
        """What is not as it was, in words."""
        now = self.look()
        paths = sorted({*now, *self.before})
        return [
            f"{path}: {self.before.get(path)} became {now.get(path)}"
            for path in paths
            if now.get(path) != self.before.get(path)
        ]

    def shown(self, folders):
        """Files that others may read and that hold what only root could: copies of secrets."""
        for folder in folders:
            for path in folder.rglob("*"):
                with contextlib.suppress(OSError):
                    facts = path.lstat()
                    if stat.S_ISREG(facts.st_mode) and facts.st_size < 1 << 20 and self.folder not in path.parents:
                        content = path.read_bytes()
                        if b"root's own secret" in content or b"root's own key" in content:
                            yield str(path)


@dataclass
class Adversary:
    """One user at work in some folders.

    Args:
        user: the name.
        folders: where it looks for something to attack.
        canaries: what its links lead to.
        log: a file that everybody may write to, in which its traps say who ran them.
        pause: seconds of rest after each attack, at most; drawn anew each time.
        attentive: it waits for what comes into being at the top of its folders, and is there at once.
        aims: folders that its links lead to besides those of the canaries.
    """

    user: str
    folders: tuple
    canaries: Path
    log: Path
    pause: float = 0.05
    seed: int = 1
    attentive: bool = False
    aims: tuple = ("/root", "/etc")
    pid: int = 0

    def start(self):
        self.pid = os.fork()
        if self.pid == 0:
            try:
                self._become()
                (self._lie_in_wait if self.attentive else self._attack)()
            finally:
                os._exit(0)

    def stop(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)

    def _become(self):
        _libc.prctl(1, signal.SIGKILL, 0, 0, 0)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        entry = pwd.getpwnam(self.user)
        os.setsid()
        os.setgroups([])
        os.setgid(entry.pw_gid)
        os.setuid(entry.pw_uid)
        os.umask(0)
        os.chdir("/")

    def _attack(self):
        draw = random.Random(self.seed)
        attacks = (self._swap, self._swap, self._swap, self._occupy, self._hard_link, self._pipe, self._trap)
        known = {}
        while True:
            folder = self._choose(draw)
            if folder is None:
                time.sleep(0.01)
                continue
            with contextlib.suppress(OSError):
                names = os.listdir(folder)
                fresh = set(names) - known.get(folder, set())
                known[folder] = set(names)
                # what has just come into being is about to be used
                name = draw.choice(sorted(fresh) if fresh and draw.random() < 0.7 else names or list(_FORESEEN))
                draw.choice(attacks)(draw, folder, name)
            time.sleep(draw.random() * self.pause)

    def _lie_in_wait(self):
        draw, known, links = random.Random(self.seed), {}, set()
        while True:
            for folder in map(Path, self.folders):
                with contextlib.suppress(OSError):
                    names = set(os.listdir(folder))
                    for name in sorted(names - known.get(folder, names)):
                        with contextlib.suppress(OSError):
                            self._swap(draw, folder, name)
                    known[folder] = names
            for pid in _commands_of_root() - links:
                links.add(pid)
                for folder in map(Path, self.folders):
                    with contextlib.suppress(OSError):
                        os.symlink(self.canaries / "public", folder / f".pgstrata-doctor-{pid}")

    def _choose(self, draw):
        """A folder somewhere below those that it may change."""
        folder = Path(draw.choice(self.folders))
        for _ in range(6):
            if draw.random() < 0.3:
                break
            with contextlib.suppress(OSError):
                inner = [entry.path for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False)]
                if inner:
                    folder = Path(draw.choice(inner))
        return folder if os.access(folder, os.W_OK) else None

    def _target(self, draw, path):
        if os.path.isdir(path):
            return draw.choice((self.canaries, self.canaries / "inner", *map(Path, self.aims)))
        return self.canaries / draw.choice(("secret", "public", "program", "closed/key", "new-by-root"))

    def _swap(self, draw, folder, name):
        """A link for a moment in the place of what is there."""
        path, aside = folder / name, folder / f".adversary-{os.getpid()}"
        with contextlib.suppress(FileExistsError):
            os.symlink(self._target(draw, path), aside)
        if exchange(path, aside):
            time.sleep(draw.random() ** 4 * 0.05)
            exchange(path, aside)
        with contextlib.suppress(OSError):
            os.unlink(aside)

    def _occupy(self, draw, folder, _):
        """A name that pgstrata makes is a link already."""
        path = folder / draw.choice(_FORESEEN)
        os.symlink(self._target(draw, path), path)
        time.sleep(draw.random() * 0.3)
        os.unlink(path)

    def _hard_link(self, draw, folder, name):
        aside = folder / f".adversary-{os.getpid()}"
        os.link(self.canaries / "public", aside)
        if exchange(folder / name, aside):
            time.sleep(draw.random() * 0.02)
            exchange(folder / name, aside)
        os.unlink(aside)

    def _pipe(self, draw, folder, name):
        """What is read there would never end; taken away soon, because waiting would not be wrong."""
        aside = folder / f".adversary-{os.getpid()}"
        os.mkfifo(aside)
        if os.path.isfile(folder / name) and exchange(folder / name, aside):
            time.sleep(draw.random() * 0.01)
            exchange(folder / name, aside)
        os.unlink(aside)

    def _trap(self, draw, folder, name):
        """A program that says who ran it."""
        path, aside = folder / name, folder / f".adversary-{os.getpid()}"
        if not os.path.isfile(path) or not os.access(path, os.X_OK):
            return
        aside.write_text(_TRAP.format(log=self.log))
        aside.chmod(0o755)
        if exchange(path, aside):
            time.sleep(draw.random() * 0.3)
            exchange(path, aside)
        os.unlink(aside)


def _commands_of_root():
    """Processes of pgstrata: names that are made of their numbers can be foreseen."""
    found = set()
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):
                if b"\0pgstrata\0" in Path("/proc", name, "cmdline").read_bytes():
                    found.add(int(name))
    return found


def roots_among(pids):
    """Those of the processes, or of their children, that are root's."""
    children = {}
    owners = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError):
                owners[int(entry.name)] = entry.stat().st_uid
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(entry.name))
    found, rest = [], list(pids)
    while rest:
        pid = rest.pop()
        rest += children.get(pid, [])
        if owners.get(pid) == 0:
            found.append(pid)
    return found
