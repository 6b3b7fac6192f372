"""What root touches while a command runs, by strace: which paths it opens, makes, changes, removes or executes.

Looking at a path without opening it (stat, readlink) does no harm and does not count.
"""

import os
import posixpath
import re
import shutil
import subprocess
from dataclasses import dataclass, field, replace
from pathlib import Path

AT = "openat openat2 mkdirat unlinkat renameat renameat2 linkat symlinkat fchmodat fchownat mknodat utimensat execveat"
PLAIN = (
    "open creat mkdir rmdir unlink rename link symlink chmod chown lchown mknod truncate utime utimes execve mount umount2 "
    "swapon chroot pivot_root"
)
USERS = "setuid setreuid setresuid"
FORKS = "clone clone3 fork vfork"
FOLDERS = "chdir fchdir"
LIMITS = "prlimit64 setrlimit"
SECURITY = Path(__file__).parents[2] / "SECURITY.md"
_LINE = re.compile(r"(?P<pid>\d+) +(?:<\.\.\. )?(?P<call>\w+)(?: resumed>|\()(?P<rest>.*)", re.DOTALL)
_RESULT = re.compile(r"\) += (-?\d+)")
_TEXT = re.compile(r'(?:(?:AT_FDCWD|\d+)<(?P<at>[^>]*)>, )?"(?P<path>(?:[^"\\]|\\.)*)"')
_ROOT = 0


@dataclass
class Touch:
    """A call of root's with its paths, and the program that made it."""

    call: str
    paths: tuple
    program: str


@dataclass
class _Process:
    uid: int
    folder: str
    program: str
    bounded: bool = False


@dataclass
class Tracing:
    """Traces a command and all that it starts; `output` is where strace writes."""

    output: Path
    folder: str = "/"
    processes: dict = field(default_factory=dict)

    @staticmethod
    def missing():
        """Why it cannot be done here; empty if it can."""
        if os.getuid() != _ROOT:
            return "only root can trace what root does"
        return "" if shutil.which("strace") else "strace is missing"

    def run(self, argv, **keywords):
        """As subprocess.run."""
        calls = ",".join(f"{AT} {PLAIN} {USERS} {FORKS} {FOLDERS} {LIMITS}".split())
        words = ("strace", "-f", "--seccomp-bpf", "-y", "-s", "4096", "-e", f"trace={calls}", "-e", "signal=none",
                 "-o", str(self.output))  # fmt: skip
        self.folder = str(keywords.get("cwd") or Path.cwd())
        return subprocess.run((*words, *argv), check=False, **keywords)

    def touches(self):
        """What root touched, in order."""
        lines = self.output.read_text(errors="replace").splitlines()
        parents = dict(_births(lines))
        pending = {}
        for line in lines:
            match = _LINE.match(line)
            if match is None:
                continue
            pid, call, rest = int(match["pid"]), match["call"], match["rest"]
            process = self._process(pid, parents)
            if "<unfinished ...>" in rest:
                pending[pid, call] = rest.partition("<unfinished ...>")[0]
                continue
            if " resumed>" in line[: match.start("rest")]:
                rest = pending.pop((pid, call), "") + rest
            result = _RESULT.search(rest)
            succeeded = result is not None and int(result[1]) >= 0
            if call in USERS.split():
                self._change_user(process, call, rest, succeeded)
                continue
            if call in LIMITS.split():
                # a limit that is set, not asked for; children inherit it
                process.bounded |= succeeded and re.search(r"RLIMIT_AS, \{rlim_cur=\d", rest) is not None
                continue
            paths = _paths(rest, process.folder)
            if call in FOLDERS.split() and succeeded:
                process.folder = paths[0] if paths else process.folder
            elif process.uid == _ROOT and paths and call not in {*FORKS.split(), *FOLDERS.split()}:
                # a failed call was an attempt: another time it might succeed
                yield Touch(call, paths, process.program)
            if call == "execve" and succeeded and paths:
                process.program = paths[0]

    def _process(self, pid, parents):
        if pid not in self.processes:
            parent = self.processes.get(parents.get(pid))
            self.processes[pid] = replace(parent) if parent else _Process(_ROOT, self.folder, "")
        return self.processes[pid]

    def _change_user(self, process, call, rest, succeeded):
        numbers = re.findall(r"-?\d+", rest.partition(")")[0])
        effective = int(numbers[0] if call == "setuid" else numbers[1])
        if succeeded and effective >= 0:
            process.uid = effective


def _births(lines):
    """Each process with its parent."""
    for line in lines:
        match = _LINE.match(line)
        if match and match["call"] in FORKS.split() and (result := _RESULT.search(match["rest"])):
            yield int(result[1]), int(match["pid"])


def _paths(rest, folder):
    """The absolute paths among the arguments of a call."""
    if rest.startswith(("NULL", "[")):
        return ()
    found = []
    for match in _TEXT.finditer(rest.partition(" = ")[0] if "[" not in rest else rest.partition("[")[0]):
        path = match["path"].encode().decode("unicode_escape")
        found.append(posixpath.normpath(posixpath.join(match["at"] or folder, path)))
    return tuple(found)


def programs_in_the_table(who):
    """Those that SECURITY.md says are run as somebody."""
    rows = [line.split("|")[1:3] for line in SECURITY.read_text().splitlines() if line.count("|") == 3]
    quoted = (re.findall("`([^`]+)`", what) for what, whom in rows if whom.strip().startswith(who))
    return {name for names in quoted for name in names if not set(name) & set(":/ ")}
