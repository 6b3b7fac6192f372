"""Another host by ssh, in a network namespace: what its transport costs there, and how fast a dataset is sent to it."""

from __future__ import annotations

import importlib.util
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from figures import Figure

from pgstrata.hosts.local import LocalHost
from pgstrata.hosts.ssh import SshHost, open_ssh
from pgstrata.hosts.tree import send_tree

PAIRS = 7
FILES, FILE_BYTES = 40, 16 << 20
SECONDS = 60
SAMPLED = ("/proc/stat", "/proc/meminfo", "/proc/diskstats", "/proc/vmstat", "/proc/loadavg", "/proc/pressure/cpu")


def _load_sshd() -> Any:
    """The second host of the tests, which are no package."""
    spec = importlib.util.spec_from_file_location("sshd", Path(__file__).parents[1] / "tests" / "support" / "sshd.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def measure_remote() -> Sequence[Figure]:
    """CPU of the transport while it asked once a second, and the speed of sending; none where there can be no rig."""
    rig = _load_sshd()
    if reason := rig.why_not():
        print(f"    no figures: {reason}")
        return []
    work = Path(tempfile.mkdtemp(prefix="pgstrata-bench-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))
    try:
        with rig.far_hosts(work / "rig", 1) as (far,):
            host = open_ssh(far.destination, run=str(work / "run"), config=far.config)
            try:
                return [_measure_door(host, far), _measure_sending(host, work)]
            finally:
                host.close()
    finally:
        shutil.rmtree(work)


def _measure_door(host: SshHost, far: Any) -> Figure:
    """All of the far side: the connection's sshd, the shell, the watcher, and the programs that they start."""
    listed = subprocess.run(["ip", "netns", "pids", far.namespace], check=True, capture_output=True, text=True).stdout
    before = {pid: cpu for pid in listed.split() if (cpu := _cpu(pid)) is not None}
    for _ in range(SECONDS):
        time.sleep(1)
        host.read_files(SAMPLED)
    # What a beat of the pulse has started meanwhile has ended, and counts for the watcher that waited for it.
    used = sum(after - cpu for pid, cpu in before.items() if (after := _cpu(pid)) is not None)
    percent = 100 * used / SECONDS
    note = f"{len(SAMPLED)} files of /proc each second for {SECONDS} s, the pulse of the link included"
    return Figure(name="remote: CPU on the server's host", value=percent, goal=0.5, unit="%", notes=(note,))


def _cpu(pid: str) -> float | None:
    """CPU seconds of a process and the children that it has waited for; None if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return sum(int(tick) for tick in fields[11:15]) / os.sysconf("SC_CLK_TCK")


def _measure_sending(host: SshHost, work: Path) -> Figure:
    """Sending, checked on both sides, against plain `tar | ssh tar` through the same connection, alternated."""
    source, target = work / "source", work / "target"
    source.mkdir()
    for number in range(FILES):
        (source / str(number)).write_bytes(os.urandom(1 << 20) * (FILE_BYTES >> 20))
    here = LocalHost()
    ours: list[float] = []
    plain: list[float] = []
    for _ in range(PAIRS):
        target.mkdir()
        begun = time.monotonic()
        packed = subprocess.Popen(["tar", "-C", source, "-cf", "-", "."], stdout=subprocess.PIPE)
        subprocess.run(host.session(("tar", "-C", str(target), "-xf", "-")), stdin=packed.stdout, check=True)
        packed.communicate()
        plain.append(time.monotonic() - begun)
        shutil.rmtree(target)
        begun = time.monotonic()
        send_tree(here, host, str(source), str(target))
        ours.append(time.monotonic() - begun)
        shutil.rmtree(target)
    ratio = statistics.median(theirs / mine for mine, theirs in zip(ours, plain, strict=True))
    medians = f"{statistics.median(ours):.2f} s against {statistics.median(plain):.2f} s"
    note = f"{FILES * FILE_BYTES >> 20} MiB, medians: {medians}"
    return Figure(name="remote: speed of sending", value=ratio, goal=0.8, low_is_good=False, notes=(note,))
