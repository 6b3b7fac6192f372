"""What a recording starts and makes, written down first, and its undoing: at the end, or by the next call after a kill.

A line names a process by its id and its start, so that another process with the same id is left alone; a control group
or a folder by its path. Undoing goes from the last line to the first, and does no harm when it is repeated.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

LEDGER: Final = "ledger.jsonl"
_PATIENCE: Final = 20.0


@dataclass(frozen=True, slots=True)
class Ledger:
    """A file of lines; the first names the process that keeps it."""

    file: Path

    def process(self, pid: int, stop: signal.Signals = signal.SIGKILL) -> None:
        """A process that was started just now, and the signal that ends it with all its children."""
        self._write(process=pid, started=started_at(pid), signal=int(stop))

    def group(self, path: Path) -> None:
        """A control group that is about to be made."""
        self._write(group=str(path))

    def folder(self, path: Path) -> None:
        """A folder that is about to be filled, and was made for this recording alone."""
        self._write(folder=str(path))

    def begin(self) -> None:
        self._write(owner=os.getpid(), started=started_at(os.getpid()))

    def _write(self, **line: object) -> None:
        with self.file.open("a") as out:
            out.write(json.dumps(line) + "\n")
            out.flush()
            os.fsync(out.fileno())

    def lines(self) -> Sequence[dict[str, object]]:
        """All whole lines; a last one that was broken off is left out, since what it names was not made yet."""
        text = self.file.read_text() if self.file.exists() else ""
        return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]

    def is_kept(self) -> bool:
        """Whether its owner still runs."""
        owners = [line for line in self.lines() if "owner" in line]
        return any(started_at(int(str(each["owner"]))) == each["started"] for each in owners)

    def undo(self) -> None:
        """End, remove and delete everything; the file goes last."""
        for line in reversed(self.lines()):
            if "process" in line:
                end_process(int(str(line["process"])), str(line["started"]), int(str(line["signal"])))
            elif "group" in line:
                remove_group(Path(str(line["group"])))
            elif "folder" in line:
                remove_folder(Path(str(line["folder"])))
        self.file.unlink(missing_ok=True)


@contextmanager
def keep_ledger(folder: Path) -> Iterator[Ledger]:
    """A ledger in a folder of this recording's own, undone in the end."""
    folder.mkdir(parents=True, exist_ok=True)
    ledger = Ledger(folder / LEDGER)
    ledger.begin()
    try:
        yield ledger
    finally:
        ledger.undo()


def sweep(work: Path) -> Sequence[Path]:
    """Undo what killed recordings have left below a folder; those at work are left alone. Returns folders swept."""
    swept = []
    for file in sorted(work.glob(f"*/{LEDGER}")):
        ledger = Ledger(file)
        if not ledger.is_kept():
            ledger.undo()
            shutil.rmtree(file.parent, ignore_errors=True)
            swept.append(file.parent)
    return swept


def started_at(pid: int) -> str:
    """When a process began, in ticks since the boot; empty where there is none, or only what was not waited for."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in {"Z", "X"} else f"{_boot()}:{fields[19]}"


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def end_process(pid: int, started: str, number: int) -> None:
    """Send the signal, and SIGKILL if it is not gone in time; nothing where the id belongs to another process."""
    for each in (number, int(signal.SIGKILL)):
        if not started or started_at(pid) != started:
            return
        with suppress(ProcessLookupError):
            os.kill(pid, each)
        until = time.monotonic() + _PATIENCE
        while started_at(pid) == started and time.monotonic() < until:
            time.sleep(0.05)


def remove_folder(path: Path) -> None:
    """Remove a folder, after ending the server whose data are in it: it may have been killed before it had a line."""
    with suppress(OSError, ValueError, IndexError):
        pid = int((path / "data" / "postmaster.pid").read_text().split()[0])
        if str(path).encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
            end_process(pid, started_at(pid), signal.SIGQUIT)
    shutil.rmtree(path, ignore_errors=True)


def remove_group(path: Path) -> None:
    """Remove an empty control group; processes of it that still run go to the group above first."""
    until = time.monotonic() + _PATIENCE
    while path.exists() and time.monotonic() < until:
        with suppress(OSError):
            for word in (path / "cgroup.procs").read_text().split():
                (path.parent / "cgroup.procs").write_text(word)
        try:
            path.rmdir()
        except OSError:
            time.sleep(0.1)
