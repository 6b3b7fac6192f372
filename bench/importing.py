"""Importing 5,000 files of pgbench with a log each: wall-clock seconds of `pgstrata import`."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from figures import Figure

KERNELS, SCALES, CLIENTS, RUNS = 25, 5, 8, 5
SUMMARY = """\
pgbench (18.3)
transaction type: <builtin: simple update>
scaling factor: {scale}
query mode: prepared
number of clients: {clients}
number of threads: {clients}
maximum number of tries: 1
duration: 60 s
number of transactions actually processed: 60000
number of failed transactions: 0 (0.000%)
latency average = 1.234 ms
latency stddev = 0.321 ms
initial connection time = 4.321 ms
tps = {tps:.6f} (without initial connection time)
"""


def write_results(folder: Path) -> int:
    """Files by kernel, scale, clients and run, as many as the goal is about; their number."""
    number = 0
    for kernel in range(KERNELS):
        for scale in range(SCALES):
            for clients in range(CLIENTS):
                place = folder / f"6.{kernel}" / str(10**scale)
                place.mkdir(parents=True, exist_ok=True)
                for run in range(RUNS):
                    number += 1
                    stem = f"{run}-{2**clients}"
                    text = SUMMARY.format(scale=10**scale, clients=2**clients, tps=1000 + number * 0.123456)
                    (place / f"{stem}.out").write_text(text)
                    start = 1_777_000_000 + 70 * number
                    log = "".join(f"{start + 2 * step} 2000 2000000 2400000 500 3000\n" for step in range(30))
                    (place / f"{stem}.{4000 + run}").write_text(log)
    return number


def measure_importing() -> Sequence[Figure]:
    """The best of three, Python's start included."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "results"
        number = write_results(folder)
        taken = []
        for turn in range(3):
            options = ("--format", "pgbench", "--pattern", "{kernel}/{scale}/{run}-{clients}.out")
            target = ("--compare", "kernel", "-o", f"{name}/{turn}.csv")
            argv = (sys.executable, "-m", "pgstrata", "import", str(folder), *options, *target)
            begin = time.monotonic()
            done = subprocess.run(argv, capture_output=True, text=True, check=True)
            taken.append(time.monotonic() - begin)
            assert f"{number:,} results from {number:,} files and {number:,} logs" in done.stdout, done.stdout
    return [Figure(name=f"import: {number:,} files and logs", value=min(taken), goal=20.0, unit="s")]
