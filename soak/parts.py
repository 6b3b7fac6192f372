"""The parts of `make soak`: what is too long for each change, in pieces of at most an hour."""

# ruff: noqa: INP001  a part of a script

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_HERE: Final = Path(__file__).parent
# Tests marked soak("NAME"); a skipped test says why.
_PYTEST: Final = (sys.executable, "-m", "pytest", "-rs", "--soak")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A command that ends with 0 if all is well; `needs` names variables of the environment that it takes.

    `whole`: nothing in it may be skipped. Tests of a whole suite are skipped where a machine cannot run them.
    """

    title: str
    argv: tuple[str, ...]
    needs: tuple[str, ...] = ()
    whole: bool = True


def _tests(name: str, title: str) -> Part:
    return Part(title=title, argv=(*_PYTEST, name))


def _script(file: str, *arguments: str) -> tuple[str, ...]:
    return (sys.executable, str(_HERE / file), *arguments)


_SERVERS: Final = "(server and not root) or alone"


PARTS: Final[Mapping[str, Part]] = {
    "kills": _tests("kills", "an experiment is killed fifty times, and no run is lost"),
    "answers": _tests("answers", "a study ends at its answer and at its budget, in real time"),
    "tutorial": _tests("tutorial", "the step of the tutorial that measures running servers"),
    "bisect-factor": _tests("bisect-factor", "a search along a factor ends at the step"),
    "bisect-kernels": _tests(
        "bisect-kernels", "a search along real kernels, emulated, ends at the one that a declared metric names"
    ),
    "bisect-commits": _tests("bisect-commits", "a search along commits that install real servers ends at the one"),
    "floors": _tests("floors", "a noise floor is measured, kept and used"),
    "old-majors": _tests("old-majors", "majors that are no longer maintained are measured"),
    "disk-full": _tests("disk-full", "a disk fills up at more places of a build"),
    "two-hosts": _tests("two-hosts", "both hosts are restored after a kill"),
    "boots": _tests("boots", "studies that boot another machine, or this one, are killed; the boots are forged"),
    "own-reboots": _tests("own-reboots", "a real machine with systemd, in QEMU, reboots itself through a whole study"),
    "vm-boots": _tests("vm-boots", "a virtual machine is made, booted into two kernels and made to panic"),
    "vm-plan": _tests("vm-plan", "a virtual machine boots two kernels through a plan; it and pgstrata are killed"),
    "vm-kills": _tests("vm-kills", "pgstrata is killed ten times around emulated boots of a virtual machine"),
    "bundles": _tests("bundles", "further kept studies show the same in a bundle"),
    "faults": Part(
        title="a thousand faults of disks, processes and servers",
        argv=_script("faults.py", "--every", "3", "--workers", "4"),
    ),
    "chaos": Part(title="an experiment that changes this host is killed 125 times", argv=_script("chaos.py")),
    "chaos-two-hosts": Part(
        title="the same with servers on two hosts", argv=_script("chaos.py", "--two-hosts", "--rounds", "100")
    ),
    "adversaries": Part(title="other users attack root's pgstrata for twenty minutes", argv=_script("attacks.py")),
    # the commit before "Root follows no link in doctor, at the lock and beside files that it replaces"
    "adversaries-shown": Part(
        title="the same users destroy files of root's where pgstrata does not defend itself",
        argv=_script("attacks.py", "--minutes", "3", "--version", "f0a1170^"),
    ),
    "grafana": _tests("grafana", "a real Prometheus reads a recorder and answers each query of the dashboard"),
    "secrets": _tests("secrets", "a password in every form of a connection string is seen nowhere else"),
    "touches": _tests("touches", "nothing that root does is in folders of others, whenever it is killed"),
    "bisect-compiled": Part(
        title="a search along commits of a compiled PostgreSQL",
        argv=_script("bisect_source.py", "$SOURCE", "--folder", str(_HERE / "work" / "bisect")),
        needs=("SOURCE",),
    ),
    # what a development build warns of is an error too
    "fuzz": Part(
        title="100,000 damaged inputs of all kinds give a message or an answer",
        argv=(sys.executable, "-X", "dev", *_PYTEST[1:-1], "-n", "2", _PYTEST[-1], "fuzz"),
    ),
    "busy": Part(title="all tests beside two busy loops, twice", argv=_script("busy.py", "--times", "2"), whole=False),
    # those that change the host are in `busy` alone
    "busy-servers": Part(
        title="timed tests and those of servers beside two busy loops, four times",
        argv=_script("busy.py", "--times", "4", "-m", _SERVERS),
        whole=False,
    ),
    "busy-servers-again": Part(
        title="the same, four times more: with those of `busy` it is ten times",
        argv=_script("busy.py", "--times", "4", "-m", _SERVERS),
        whole=False,
    ),
}
