"""Faults while real experiments run: disks, kills, stops, and servers that crash, hang, restart or vanish.

Each round begins a study of two runs, has its fault at a moment that is drawn, and begins the same command again on a
machine that works. Layers below the server are its own WAL in memory and a CPU quota, which change nothing for others.
"""

# ruff: noqa: INP001, T201  part of a script that prints

from __future__ import annotations

import os
import pwd
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from fault_scenarios import digests
from faulty_fs import Effect, FaultyFs, sum_concerned

from pgstrata.app.machine import open_machine
from pgstrata.model.experiment import ServerKind, ServerSpec

EXPERIMENT: Final = """\
question = "Is everything as it was?"
blocks = 1
controls = ["same"]
[common]
server = "{server}"
{layers}
[[cells]]
workload = "select-only"
scale = 1
clients = 1
run = "1s"
warmup = "0s"
"""
SMALL: Final = 'settings.max_wal_size = "64MB"\nsettings.shared_buffers = "16MB"'
LAYERS: Final = f'cpu.quota = "150 %"\nstorage.wal = "memory"\n{SMALL}'
DISKS: Final = (Effect.NO_SPACE, Effect.INPUT_OUTPUT, Effect.READ_ONLY)
PATIENCE: Final = 240.0
_PORT: Final = 15433


class Foreign:
    """A running server that is not pgstrata's, as `dsn:` names it."""

    def __init__(self, folder: Path) -> None:
        with open_machine(print) as machine:
            self._build = machine.servers.resolve(ServerSpec(kind=ServerKind.EMBEDDED))
        folder.mkdir()
        self._user = "postgres" if _known("postgres") else "nobody"
        shutil.chown(folder, self._user)
        self._data = folder / "data"
        words = ("initdb", "-D", str(self._data), "-U", "boss", "-A", "trust", "--no-sync")
        self.dsn = f"host={folder} port={_PORT} user=boss dbname=postgres"
        self._server = self._begin(*words)
        self._server.wait()
        self.start()

    def _begin(self, program: str, *words: str) -> subprocess.Popen[bytes]:
        argv = (self._build.program(program), *words)
        return subprocess.Popen(argv, cwd="/", user=self._user, stdin=-3, stdout=-3, stderr=-3)

    def start(self) -> None:
        """Up again, as soon as what is left of it has ended."""
        deadline = time.monotonic() + 60
        folder = self._data.parent
        options = f"listen_addresses= unix_socket_directories={folder} port={_PORT} fsync=off".split()
        while not self._answers():
            if self._server.poll() is not None:
                settings = (word for option in options for word in ("-c", option))
                self._server = self._begin("postgres", "-D", str(self._data), *settings)
            if time.monotonic() > deadline:
                raise RuntimeError("the running server does not start")
            time.sleep(0.2)

    def _answers(self) -> bool:
        words = ("-XAtq", "-c", "SELECT 1", self.dsn)
        return self._server.poll() is None and self._begin("psql", *words).wait() == 0

    def crash(self) -> None:
        """Killed, and all its processes with it."""
        self._server.kill()
        self._server.wait()

    def restart(self) -> None:
        """As by an administrator who does not wait."""
        self.stop()
        self.start()

    def stop(self) -> None:
        """Down at once."""
        self._server.send_signal(signal.SIGCONT)
        self._server.send_signal(signal.SIGQUIT)
        self._server.wait()

    def freeze(self, seconds: float) -> None:
        """No connection is accepted for so long."""
        self._server.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self._server.send_signal(signal.SIGCONT)

    def left(self) -> list[str]:
        """Databases of runs and of incomplete datasets."""
        words = ("-XAtq", "-c", "SELECT datname FROM pg_database WHERE datname ~ '^pgstrata_(run|new)_'", self.dsn)
        done = subprocess.run((self._build.program("psql"), *words), check=True, capture_output=True, text=True)
        return done.stdout.split()


class Live:
    """Rounds in a folder of their own; `fs` is below it."""

    def __init__(self, folder: Path, fs: FaultyFs, seed: int) -> None:
        self.folder, self.fs = folder, fs
        self.draw = random.Random(seed)  # noqa: S311 - moments, not secrets
        self.foreign = Foreign(folder / "foreign")
        self.rounds, self.seconds = 0, 0.0
        self._data, self._environ = folder / "data", dict(os.environ)
        self._counts: dict[str, Counter[str]] = {}
        self.kinds: Mapping[str, tuple[int, Callable[[], list[str]]]] = {
            "dsn-crash": (6, lambda: self._vanish(self.foreign.crash)),
            "dsn-restart": (5, lambda: self._vanish(self.foreign.restart)),
            "dsn-hang": (3, lambda: self._vanish(lambda: self.foreign.freeze(self.draw.uniform(2, 8)))),
            "dsn-kill": (5, lambda: self._round(self._kill, dsn=True)),
            "crash": (11, lambda: self._round(lambda process: self._server(process, signal.SIGKILL))),
            "hang": (3, lambda: self._round(lambda process: self._server(process, signal.SIGSTOP))),
            "kill": (14, lambda: self._round(self._kill)),
            "stop": (6, lambda: self._round(self._pause)),
            "state": (12, lambda: self._disk("state")),
            "study": (35, lambda: self._disk("study")),
        }

    def run(self, rounds: slice) -> tuple[int, int]:
        """Print and count these rounds of all, and those after which something was wrong."""
        if wrong := self._round(lambda _: None):
            raise RuntimeError(f"without a fault: {'; '.join(wrong)}")
        schedule = [kind for kind, (count, _) in self.kinds.items() for _ in range(count)][rounds]
        failed = 0
        for kind, count in Counter(schedule).items():
            bad, begun = 0, time.monotonic()
            for _ in range(count):
                if wrong := self.kinds[kind][1]():
                    bad += 1
                    print(f"{kind}, round {self.rounds}: {'; '.join(wrong)}", flush=True)
            failed += bad
            print(f"{kind:12} {count:3} rounds in {time.monotonic() - begun:.0f} s; {bad} wrong", flush=True)
        return len(schedule), failed

    def close(self) -> None:
        """Nothing runs any more, and nothing is changed."""
        self.foreign.stop()
        self._again(("host", "restore"), self._environ)

    # ------------------------------------------------------------------------------------------- rounds

    def _round(self, fault: Callable[[subprocess.Popen[str]], object], *, dsn: bool = False, on: str = "") -> list[str]:
        """One study with its fault; `on` names the folder that lies on the file system that fails."""
        self.rounds += 1
        state = (self.fs.mount if on == "state" else self.folder) / "state"
        study = (self.fs.mount if on == "study" else self.folder) / f"study-{self.rounds}"
        self._environ = environ = {
            **os.environ, "PGSTRATA_STATE": str(state), "PGSTRATA_DATA": str(self._data),
            "PGSTRATA_LOCK": str(self.folder / "lock"),
        }  # fmt: skip
        server = f"dsn:{self.foreign.dsn}" if dsn else "embedded"
        changing = on == "state" or fault == self._kill
        layers = "" if dsn else LAYERS if changing else SMALL
        file = self.folder / "live.toml"
        file.write_text(EXPERIMENT.format(server=server, layers=layers))
        words = ("run", str(file), "--study", str(study))
        begun = time.monotonic()
        with _started(words, environ, self.folder) as process:
            self._output = self.folder / "said"
            fault(process)
            code = _wait(process)
        if not self.seconds:
            self.seconds = time.monotonic() - begun
        self.fs.disarm()
        said = self._output.read_text(errors="replace")
        wrong = _judge("it", code, said)
        before = _committed(study)
        # ends with 0 only if nothing is left changed
        wrong += self._again(("host", "restore"), environ)
        wrong += self._again(words, environ)
        after = _committed(study)
        wrong += [f"run {name} was lost or changed" for name, files in before.items() if after.get(name) != files]
        if len(after) != 2:  # noqa: PLR2004 - a block of two
            wrong.append(f"{len(after)} runs instead of 2")
        if (
            dsn and self.foreign.left()
        ):  # runs that failed with the server are part of the study: there was none to make
            wrong += self._again((*words[:3], f"{study}-again"), environ)
        wrong += self._left(dsn=dsn)
        shutil.rmtree(study, ignore_errors=True)
        return [f"{text} [{said[-600:]}]" for text in wrong] if wrong else []

    def _again(self, words: tuple[str, ...], environ: Mapping[str, str]) -> list[str]:
        with _started(words, environ, self.folder) as process:
            code = _wait(process)
        said = (self.folder / "said").read_text(errors="replace")
        good = code == 0 and "Traceback" not in said
        return [] if good else [f"{words[0]} {words[1]} ended with {code}: {said[-1500:]}"]

    def _left(self, *, dsn: bool) -> list[str]:
        deadline = time.monotonic() + 20
        while left := [*self._servers(), *self._mounts(), *(self.foreign.left() if dsn else [])]:
            if time.monotonic() > deadline:
                return [f"left: {', '.join(left)}"]
            time.sleep(0.2)
        return [f"left: {path}" for path in self._data.glob("clones/*/*")]

    def _servers(self) -> Iterator[str]:
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                words = path.read_bytes()
                if f"{self._data}/".encode() in words and b"postgres" in words.split(b"\0")[0]:
                    yield words.replace(b"\0", b" ").decode()

    def _mounts(self) -> list[str]:
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
        return [line for line in lines if str(self.folder) in line and str(self.fs.mount) != line.split()[4]]

    # ------------------------------------------------------------------------------------------- faults

    def _disk(self, on: str) -> list[str]:
        """The disk of a folder fails at an operation that is drawn from those of a round without a fault."""
        effect = DISKS[self.rounds % len(DISKS)]
        if on not in self._counts:

            def count(process: subprocess.Popen[str]) -> None:
                self.fs.arm(0, effect, 0)
                _wait(process)
                self._counts[on] = self.fs.disarm()

            if wrong := self._round(count, on=on):
                return [f"without a fault: {text}" for text in wrong]
        most = sum_concerned(self._counts[on], effect)
        number = self.draw.randint(1, max(1, most))
        wrong = self._round(lambda _: self.fs.arm(number, effect, 0), on=on)
        return [f"{effect} at {number} of {most}: {text}" for text in wrong]

    def _signal(self, process: subprocess.Popen[str], number: int) -> None:
        time.sleep(self.draw.uniform(0.2, self.seconds))
        process.send_signal(number)

    def _kill(self, process: subprocess.Popen[str]) -> None:
        self._signal(process, signal.SIGKILL)

    def _pause(self, process: subprocess.Popen[str]) -> None:
        self._signal(process, signal.SIGSTOP)
        time.sleep(self.draw.uniform(1, 4))
        process.send_signal(signal.SIGCONT)

    def _server(self, process: subprocess.Popen[str], number: int) -> None:
        """A signal to the server that is up at a moment that is drawn."""
        time.sleep(self.draw.uniform(0, self.seconds / 2))
        while process.poll() is None:
            for file in self._data.glob("clones/*/*/data/postmaster.pid"):
                with suppress(OSError, ValueError, IndexError):
                    time.sleep(self.draw.uniform(0, 1))
                    os.kill(_postmaster(file.parent), number)
                    return
            time.sleep(0.01)

    def _vanish(self, fault: Callable[[], object]) -> list[str]:
        def at_a_moment(process: subprocess.Popen[str]) -> None:
            time.sleep(self.draw.uniform(0.2, self.seconds))
            fault()
            _wait(process)
            self.foreign.start()

        return self._round(at_a_moment, dsn=True)


@contextmanager
def _started(words: tuple[str, ...], environ: Mapping[str, str], folder: Path) -> Iterator[subprocess.Popen[str]]:
    with (folder / "said").open("w") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "pgstrata", *words],
            cwd=folder,
            env=dict(environ),
            stdout=said,
            stderr=said,
            text=True,
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def _wait(process: subprocess.Popen[str]) -> int | None:
    """How it ended, None if it did not in time."""
    try:
        return process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        return None


def _judge(what: str, code: int | None, said: str) -> list[str]:
    wrong = [f"{what} printed a traceback"] if "Traceback" in said else []
    if code is None:
        return [*wrong, f"{what} did not end in {PATIENCE:g} s"]
    if code not in {0, 1, 4, -signal.SIGKILL}:
        wrong.append(f"{what} ended with {code}")
    if code in {1, 4} and "->" not in said:
        wrong.append(f"{what} ended with {code} and no remedy")
    return wrong


def _committed(study: Path) -> dict[str, dict[str, str]]:
    """The files of each committed run."""
    found = (path.parent for path in study.glob("evidence/b*/*/*/run.json"))
    return {str(path.relative_to(study)): digests(path) for path in found}


def _postmaster(data: Path) -> int:
    return int((data / "postmaster.pid").read_text().split()[0])


def _known(user: str) -> bool:
    try:
        pwd.getpwnam(user)
    except KeyError:
        return False
    return True
