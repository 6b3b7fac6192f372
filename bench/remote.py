"""Another host by ssh, in a network namespace: what its transport costs there, and how fast a dataset is sent to it."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from far import far_rig
from figures import Figure
from sending import measure_sending

from pgstrata.hosts.ssh import SshHost, open_ssh

FILES, FILE_BYTES = 40, 16 << 20
SECONDS = 60
SAMPLED = ("/proc/stat", "/proc/meminfo", "/proc/diskstats", "/proc/vmstat", "/proc/loadavg", "/proc/pressure/cpu")


def measure_remote() -> Sequence[Figure]:
    """CPU of the transport while it asked once a second, and the speed of sending; none where there can be no rig."""
    with far_rig() as rig:
        if rig is None:
            return []
        source = rig.work / "source"
        source.mkdir()
        for number in range(FILES):
            (source / str(number)).write_bytes(os.urandom(1 << 20) * (FILE_BYTES >> 20))
        host = open_ssh(rig.far.destination, run=str(rig.work / "run"), config=rig.far.config)
        try:
            sending = measure_sending(host, source, rig.work / "target", "remote: speed of sending")
            return [_measure_door(host, rig.far), sending]
        finally:
            host.close()


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
