"""Sessions that look at other sessions get a CPU as soon as they want one.

Else they get one most easily when a session has gone to sleep, and see sleeping ones too often. They want it for a
moment: short slices let them interrupt others where no CPU is idle. A real-time priority is no substitute: it
interrupts whoever is on its CPU though another one is idle; `docs/concepts.md` has what came of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import Final

from pgstrata.conduct.arm import FATAL
from pgstrata.conduct.rig import Rig
from pgstrata.errors import PgstrataError
from pgstrata.ports.collector import Sampling
from pgstrata.ports.host import Command
from pgstrata.ports.server import BACKEND, RunningServer

SLICE: Final = 100_000
"""Nanoseconds, the least that Linux gives."""
_CONNECTED: Final = 1.0
_POLL: Final = 0.01
_PATIENCE: Final = 10.0
AT_ONCE: Final = """\
postmaster=$1 program=$2 slice=$3; shift 3
for each; do
    parent=$(sed -n 's/^PPid:[[:space:]]*//p' "/proc/$each/status")
    [ "$parent" = "$postmaster" ] || continue
    python3 -c "$program" "$slice" "$each"
    case $? in
    0) ;;
    126 | 127) chrt --other --sched-runtime "$slice" --pid 0 "$each" || renice -n -20 -p "$each" ;;
    *) renice -n -20 -p "$each" ;;
    esac
done
"""
"""Script for processes that are children of the first: short slices, or before Linux 6.12 the first of all turns, which
only root may give. Where neither can be they go on as they are."""


def read_backends(sampling: Sampling) -> tuple[int, ...]:
    """The server's process that answers a sampler, where it asks one that has answered already."""
    path = f"{sampling.output}{BACKEND}"
    said = sampling.host.read_files((path,)).get(path, b"").split()
    return tuple(int(word) for word in said if word.isdigit())


def let_look_at_once(rig: Rig, server: RunningServer, samplings: Sequence[Sampling]) -> None:
    """Have those of a run that want it scheduled at once; they are pgstrata's own sessions, and end with the run.

    Not with servers that pgstrata did not start: these may run anywhere.
    """
    prompt = [sampling for sampling in samplings if sampling.prompt]
    if server.postmaster_pid is None or not prompt:
        return
    end = rig.clock.monotonic() + _CONNECTED
    while not all(pids := [read_backends(sampling) for sampling in prompt]) and rig.clock.monotonic() < end:
        rig.clock.sleep(_POLL)
    if found := [str(pid) for each in pids for pid in each]:
        home = rig.server_host(server.environment)
        words = (str(server.postmaster_pid), program(), str(SLICE), *found)
        command = Command(argv=("sh", "-c", AT_ONCE, "sh", *words))
        try:
            (home.root or home.host).run(command, timeout=_PATIENCE, check=False)
        except FATAL:
            raise
        except PgstrataError:
            return  # they look when they get a CPU


def program() -> str:
    """The text that python3 runs on the server's host."""
    return (files(__package__) / "at_once.py").read_text("utf-8")
