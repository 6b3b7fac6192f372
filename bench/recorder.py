"""What a recorder costs: its CPU and memory beside a hundred sessions, its archive's growth, the speed of `explain`.

DSN names a running server on this machine with pg_stat_statements and the tables of `pgbench -i`; without it only what
needs no server is measured.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from figures import Figure
from recorded_day import BEGIN, DAY, HOUR, make_hours, make_slow
from startup import cpu_of

from pgstrata.app.machine import open_machine

SESSIONS = 100
SECONDS = int(os.environ.get("SECONDS_RECORDED") or 120)
WARM = 15
RATE = 300
_TICKS = os.sysconf("SC_CLK_TCK")
_MEGABYTE = 1 << 20


def measure_recorder() -> Iterator[Figure]:
    """CPU and memory of a real recorder where DSN is given; `explain` over a made-up day."""
    dsn = os.environ.get("DSN")
    if dsn:
        yield from _measure_live(dsn)
    with tempfile.TemporaryDirectory(prefix="pgstrata-") as folder:
        yield from _measure_day(Path(folder))


def _measure_live(dsn: str) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory(prefix="pgstrata-") as folder, open_machine(print) as machine:
        tools = machine.servers.client_tools()
        archive = Path(folder) / "archive"
        load = [tools.program("pgbench"), "-n", "-c", str(SESSIONS), "-R", str(RATE), "-T", str(SECONDS + WARM), dsn]
        environ = {**os.environ, **tools.process_environment}
        words = [sys.executable, "-m", "pgstrata", "watch", dsn, "--archive", str(archive)]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        with subprocess.Popen(load, env=environ, **quiet) as bench, subprocess.Popen(words, **quiet) as recorder:  # type: ignore[call-overload]
            time.sleep(WARM)
            family = (recorder.pid, *_children(recorder.pid))
            before, size = sum(map(_ticks, family)), _size(archive)
            time.sleep(SECONDS - WARM)
            used = sum(map(_ticks, family)) - before
            memory = sum(map(_resident, family))
            grown = _size(archive) - size
            recorder.terminate()
            bench.terminate()
        seconds = SECONDS - WARM
        share = used / _TICKS / seconds * 100
        yield Figure(name="recorder_cpu", value=share, goal=0.5, unit="%", notes=[f"{SESSIONS} sessions, {seconds} s"])
        yield Figure(name="recorder_memory", value=memory / _MEGABYTE, goal=150, unit="MB")
        yield Figure(name="recorder_disk", value=grown * DAY / seconds / _MEGABYTE, goal=50, unit="MB/d")


def _measure_day(folder: Path) -> Iterator[Figure]:
    """CPU seconds of `explain`, which also says which figures of the host changed before or after the load."""
    make_hours(folder / "usual")
    for name, begin, end in (("explain_day", 4 * HOUR, DAY), ("explain_hour", 20 * HOUR, 21 * HOUR)):
        archive = folder / name
        shutil.copytree(folder / "usual", archive)
        make_slow(archive, begin, end)
        windows = ("--from", f"@{BEGIN + begin}", "--to", f"@{BEGIN + end}", "--against", f"@{BEGIN}..@{BEGIN + begin}")
        words = (sys.executable, "-m", "pgstrata", "explain", str(archive), *windows, "--json")
        printed = folder / f"{name}.json"
        seconds = cpu_of(words, printed)
        found = json.loads(printed.read_bytes())
        if found["outcome"] != "incident" or not found["leads"]:
            raise SystemExit(f"{name}: explain found no incident, or no change of the host before or after it")
        notes = [f"{(end - begin) // HOUR} h against {begin // HOUR} h, {len(found['leads'])} leads"]
        yield Figure(name=name, value=seconds, goal=3, unit="s", notes=notes)


def _children(pid: int) -> tuple[int, ...]:
    return tuple(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


def _ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def _resident(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:"))


def _size(folder: Path) -> int:
    """Bytes of the pages of the database, whether they are in its file yet or still in its log."""
    with closing(sqlite3.connect(f"{(folder / 'archive.sqlite').as_uri()}?mode=ro", uri=True)) as connection:
        return int(
            connection.execute("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size").fetchone()[0]
        )
