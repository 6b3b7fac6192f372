"""Asks the scheduler for short time slices where they help: sent to the server's host, where python3 runs it.

Arguments: time slices in nanoseconds; the least CPU burst in nanoseconds of a server's processes, in the mean, with
which they are asked for; the postmaster's process id; ids of processes of the same user, its children, that are to
have them.
Exit code 1 where the kernel has none of that length (before Linux 6.12).
"""

import ctypes
import os
import struct
import sys
import time
from contextlib import suppress
from pathlib import Path

NUMBERS = {"x86_64": (314, 315), "aarch64": (274, 275)}  # of sched_setattr and sched_getattr
ATTRIBUTES = struct.Struct("=IIQiIQQQ")  # size, policy, flags, nice, priority, runtime, deadline, period
FAIR = (0, 3)  # SCHED_OTHER, SCHED_BATCH
ENOUGH = 500  # bursts
STEP, STEPS = 0.25, 20  # seconds, and how often


def list_children(postmaster: int) -> list[int]:
    """Processes of the server, at this moment."""
    return [int(word) for word in Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()]


def measure(pids: list[int]) -> dict[int, tuple[int, int]]:
    """Nanoseconds on a CPU, and how often it got one, by process."""
    found = {}
    for pid in pids:
        with suppress(OSError):  # it has ended
            ran, _, often = Path(f"/proc/{pid}/schedstat").read_text().split()
            found[pid] = int(ran), int(often)
    return found


def has_long_bursts(postmaster: int, own: list[int], least: int) -> bool:
    """Whether its processes compute for that long at a time; looked at until there are enough bursts, or too few."""
    first: dict[int, tuple[int, int]] = {}
    for _ in range(STEPS):
        last = measure([pid for pid in list_children(postmaster) if pid not in own])
        first = last | first
        often = sum(last[pid][1] - first[pid][1] for pid in last)
        if often >= ENOUGH:
            return sum(last[pid][0] - first[pid][0] for pid in last) / often >= least
        time.sleep(STEP)
    return False


def ask(pid: int, nanoseconds: int) -> bool:
    """Whether the process has time slices of that length afterwards."""
    setter, getter = NUMBERS[os.uname().machine]
    kernel = ctypes.CDLL(None)

    def read() -> tuple[int, ...]:
        found = ctypes.create_string_buffer(ATTRIBUTES.size)
        kernel.syscall(getter, pid, found, ATTRIBUTES.size, 0)
        return ATTRIBUTES.unpack(found.raw)

    size, policy, _, nice, *_ = read()
    if size and policy in FAIR:
        kernel.syscall(setter, pid, ATTRIBUTES.pack(ATTRIBUTES.size, policy, 0, nice, 0, nanoseconds, 0, 0), 0)
    return read()[5] == nanoseconds


def main(time_slices: int, least: int, postmaster: int, *pids: int) -> int:
    """The exit code."""
    try:
        own = [pid for pid in pids if pid in list_children(postmaster)]
        if not own or not has_long_bursts(postmaster, list(pids), least):
            return 0
    except OSError:
        return 0  # the server has ended, or the kernel does not list children
    done = [ask(pid, time_slices) for pid in own]
    return 0 if all(done) else 1


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
