"""Sessions that look at other sessions get a CPU as soon as they want one, where it matters.

Where all CPUs are busy they get one when a session has gone to sleep, and see sleeping ones too often. Short time
slices of the scheduler let them interrupt others; but while they look, on few CPUs, who was interrupted stands still
and others go on. So they have short ones where sessions compute for longer at a time than a look takes:
`docs/methods.md` has what came of it. A real-time priority is no substitute: it interrupts whoever is on its CPU
though another one is idle.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import Final

from pgstrata.conduct.arm import FATAL
from pgstrata.conduct.rig import Rig
from pgstrata.errors import HostNotFitError, PgstrataError
from pgstrata.ports.collector import Sampling
from pgstrata.ports.host import Command, Process
from pgstrata.ports.server import BACKEND, RunningServer

TIME_SLICE: Final = 100_000
"""Nanoseconds, the least that Linux gives."""
LONG_BURST: Final = 100_000
"""Nanoseconds on a CPU at a time; a look takes 60 to 100 µs from its wake-up."""
_CONNECTED: Final = 1.0
_POLL: Final = 0.01


def read_backends(sampling: Sampling) -> tuple[int, ...]:
    """The server's process that answers a sampler, where it asks one that has answered already."""
    path = f"{sampling.output}{BACKEND}"
    said = sampling.host.read_files((path,)).get(path, b"").split()
    return tuple(int(word) for word in said if word.isdigit())


def ask_for_first_sample(rig: Rig, server: RunningServer, samplings: Sequence[Sampling]) -> Process | None:
    """What sees to that beside a run, some seconds long; None where nothing can.

    Not with servers that pgstrata did not start: these may run anywhere. Sessions without it look when they get a CPU.
    """
    prompt = [sampling for sampling in samplings if sampling.prompt]
    if server.postmaster_pid is None or not prompt:
        return None
    end = rig.clock.monotonic() + _CONNECTED
    while not all(pids := [read_backends(sampling) for sampling in prompt]) and rig.clock.monotonic() < end:
        if any(sampling.process.poll() is not None for sampling in prompt):
            break  # it could not connect, and the run begins all the same
        rig.clock.sleep(_POLL)
    found = [str(pid) for each in pids for pid in each]
    if not found:
        return None
    words = (str(TIME_SLICE), str(LONG_BURST), str(server.postmaster_pid), *found)
    command = Command(argv=("python3", "-I", "-S", "-c", program(), *words))
    try:
        return rig.server_host(server.environment).host.spawn(command, stdout="/dev/null", stderr="/dev/null")
    except HostNotFitError:
        return None  # there is no python3, which other hosts need not have
    except FATAL:
        raise
    except PgstrataError:
        return None


def program() -> str:
    """The text that python3 runs on the server's host."""
    return (files(__package__) / "first_sample.py").read_text("utf-8")
