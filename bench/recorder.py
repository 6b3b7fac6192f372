"""What a recorder costs: its CPU and memory beside a hundred sessions, its archive's growth, the speed of `explain`.

DSN names a running server on this machine with pg_stat_statements and the tables of `pgbench -i`; without it only what
needs no server is measured.
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
from figures import Figure

from pgstrata.app.explain import load_explanation
from pgstrata.app.machine import open_machine
from pgstrata.model.archive import SessionClass, SessionsLook
from pgstrata.store.archives.thinning import Keep
from pgstrata.store.archives.writer import ArchiveWriter

SESSIONS = 100
SECONDS = int(os.environ.get("SECONDS_RECORDED") or 120)
WARM = 15
RATE = 300
DAY = 86_400
BEGIN = 1_795_651_200
_TICKS = os.sysconf("SC_CLK_TCK")
_MEGABYTE = 1 << 20


def measure_recorder() -> Iterator[Figure]:
    """CPU and memory of a real recorder where DSN is given; `explain` over a made-up day."""
    dsn = os.environ.get("DSN")
    if dsn:
        yield from _measure_live(dsn)
    with tempfile.TemporaryDirectory(prefix="pgstrata-") as folder:
        yield from _measure_day(Path(folder) / "archive")


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
    """200 sessions in some forty classes each second for a day, and its second half explained by the first."""
    draws = np.random.default_rng(1)
    classes = [
        SessionClass(
            kind="client backend", database="shop", role="clerk", application=f"app{number % 5}", state="active",
            wait_type="" if number % 3 else "IO", event="" if number % 3 else "DataFileRead", statement=f"q{number}",
        )
        for number in range(80)
    ]  # fmt: skip
    writer = ArchiveWriter.open(folder, Keep())
    for number in range(DAY):
        chosen = draws.choice(len(classes), 40, replace=False)
        counts = {classes[place]: 5 for place in chosen}
        writer.add_look(BEGIN + number, SessionsLook(counts=counts, blocked={}))
        writer.add_server(BEGIN + number, 1.0, {"commits": float(draws.normal(1000, 50))})
        if number % 600 == 0:
            writer.flush(BEGIN + number)
    writer.flush(BEGIN + DAY)
    writer.tidy(BEGIN + DAY)
    writer.close()
    begun = time.perf_counter()
    load_explanation(folder, f"@{BEGIN + DAY // 2}", None, None)
    yield Figure(name="explain_day", value=time.perf_counter() - begun, goal=3, unit="s", notes=["12 h against 2 h"])
    begun = time.perf_counter()
    load_explanation(folder, f"@{BEGIN + 46_000}", f"@{BEGIN + 47_140}", f"@{BEGIN}..@{BEGIN + 46_000}")
    yield Figure(name="explain_19_minutes", value=time.perf_counter() - begun, goal=3, unit="s")


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
