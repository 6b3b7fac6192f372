"""Folders sent to another host, against plain `tar | ssh tar` through the same connection, in turns.

Neither waits until a disk has what was sent. Plain `tar` compares nothing, and is given an empty folder.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from far import far_rig
from figures import Figure
from observer import one_server

from pgstrata.hosts.local import LocalHost
from pgstrata.hosts.ssh import SshHost, open_ssh
from pgstrata.hosts.tree import send_tree

PAIRS = int(os.environ.get("PAIRS") or 7)
# Names of datasets with their scales: with the server's own catalogues some tens of MiB, and some hundreds.
DATASETS = {"a small dataset": 1, "a dataset": 25}


def measure_dataset_transfer() -> Iterator[Figure]:
    """Ratio of rates for an installation of PostgreSQL and for the files of a small and a larger pgbench database."""
    with far_rig() as rig:
        if rig is None:
            return
        folders: dict[str, Path] = {}
        for name, scale in DATASETS.items():
            with one_server(scale) as up:
                folders["an installation"] = Path(up.server.build.prefix)
                folders[name] = Path(shutil.copytree(up.dataset, rig.work / f"scale-{scale}"))
        host = open_ssh(rig.far.destination, run=str(rig.work / "run"), config=rig.far.config)
        try:
            for name, folder in folders.items():
                yield measure_sending(host, folder, rig.work / "target", f"dataset-transfer: {name}")
        finally:
            host.close()


def measure_sending(host: SshHost, source: Path, target: Path, name: str) -> Figure:
    """Sending, checked on both sides, against plain `tar | ssh tar`; which comes first alternates."""
    seconds: dict[bool, list[float]] = {True: [], False: []}
    for number in range(PAIRS):
        for ours in (number % 2 == 0, number % 2 == 1):
            begun = time.monotonic()
            if ours:
                send_tree(LocalHost(), host, str(source), str(target))
            else:
                _send_plainly(host, source, target)
            seconds[ours].append(time.monotonic() - begun)
            shutil.rmtree(target)
    ratios = sorted(plain / mine for mine, plain in zip(seconds[True], seconds[False], strict=True))
    size = sum(path.lstat().st_size for path in source.rglob("*") if path.is_file())
    mine, plain = (statistics.median(seconds[each]) for each in (True, False))
    rates = f"{size / mine / 2**20:.0f} MiB/s against {size / plain / 2**20:.0f} MiB/s"
    return Figure(
        name=name, value=statistics.median(ratios), goal=0.8, low_is_good=False,
        notes=(
            f"{size >> 20} MiB, medians of {PAIRS}: {mine:.2f} s against {plain:.2f} s, {rates}",
            f"ratios: {' '.join(f'{ratio:.2f}' for ratio in ratios)}; both sides share {os.cpu_count()} CPUs",
        ),
    )  # fmt: skip


def _send_plainly(host: SshHost, source: Path, target: Path) -> None:
    target.mkdir()
    packed = subprocess.Popen(["tar", "-C", source, "-cf", "-", "."], stdout=subprocess.PIPE)
    subprocess.run(host.session(("tar", "-C", str(target), "-xf", "-")), stdin=packed.stdout, check=True)
    packed.communicate()
