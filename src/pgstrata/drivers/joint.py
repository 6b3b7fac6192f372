"""One load from several machines: each has a process of the driver with its part of the clients, and all begin at once.

What the processes leave is joined as that of several processes on one machine is (`shares`), so that the driver's own
parser reads it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pgstrata.drivers.shares import SEEDS_APART, add_points, join_evidence
from pgstrata.errors import HostNotFitError, ParseError, UsageError
from pgstrata.model.driver import Capabilities
from pgstrata.model.experiment import Cell
from pgstrata.ports.clients import STARTS, ClientProcesses, render_start, share_clients, share_threads
from pgstrata.ports.driver import CountsLate, Driver, DriverResult, Load, ProgressPoint, Statement, StepCounts
from pgstrata.ports.host import Clock, Process, StopSignal
from pgstrata.ports.steps import Steps
from pgstrata.ports.target import Generator

# Each process has to be started before the time at which all begin: its files are written, and it is spawned.
_HEAD_START: Final = 0.1
_EXCHANGES: Final = 6
_QUICK: Final = 0.02
_STARTED: Final = "started"
# Waits for the time $1 of the machine's own clock, notes when it goes on, and becomes the load generator.
_HOLD: Final = """\
left=$(awk -v at="$1" -v now="$(date +%s.%N)" 'BEGIN { printf "%.4f", at - now }')
case "$left" in -*) ;; *) sleep "$left" ;; esac
date +%s.%N >"$2"
shift 2
exec "$@"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A load generator and its driver there."""

    generator: Generator
    driver: Driver

    def folder(self, first: Generator, folder: str) -> str:
        """The folder here of an execution whose folder at the first generator is given."""
        return self.generator.scratch + folder.removeprefix(first.scratch)


@dataclass(slots=True, kw_only=True)
class _Under:
    """An execution under way: its places, when they were to begin by their clocks, and what each has told so far."""

    places: Sequence[Place]
    starts: Sequence[float]
    offsets: list[int]
    points: list[list[ProgressPoint]]


class JointDriver:
    """Implements `ports.Driver` for one load generator on several machines.

    Folders are named as at the first of them, and lie at the same place below the scratch folder of each.

    Args:
        places: at least two.
        clock: the coordinator's.
    """

    def __init__(self, places: Sequence[Place], clock: Clock) -> None:
        self._places = tuple(places)
        self._clock = clock
        self._under: dict[str, _Under] = {}
        self._facts: Mapping[str, str] | None = None

    @property
    def _first(self) -> Driver:
        return self._places[0].driver

    @property
    def name(self) -> str:
        return self._first.name

    @property
    def capabilities(self) -> Capabilities:
        return replace(self._first.capabilities, pausable=False, placeable=False)

    def ran(self, evidence: Mapping[str, bytes]) -> bool:
        return self._first.ran(evidence)

    def parse(self, evidence: Mapping[str, bytes]) -> DriverResult:
        return self._first.parse(evidence)

    def messages(self, evidence: Mapping[str, bytes]) -> tuple[str, ...]:
        return self._first.messages(evidence)

    def count_late(self, evidence: Mapping[str, bytes], *, limit: float, lead: float) -> StepCounts:
        if not isinstance(self._first, CountsLate):
            raise ParseError(f"the driver {self.name} does not log the latency of each transaction")
        return self._first.count_late(evidence, limit=limit, lead=lead)

    def facts(self) -> Mapping[str, str]:
        """Facts of the first machine's driver; HostNotFitError where another machine has another version."""
        if self._facts is None:
            first, *others = (place.driver.facts() for place in self._places)
            for place, other in zip(self._places[1:], others, strict=True):
                if other["version"] != first["version"]:
                    raise HostNotFitError(
                        f"{self.name} is {first['version']} on {self._places[0].generator.host.name} and "
                        f"{other['version']} on {place.generator.host.name}: one load needs one version",
                        where=place.generator.host.name,
                        remedy=f"install the same version of {self.name} on all machines of this client",
                    )
            self._facts = first
        return self._facts

    def statements(self, load: Load) -> tuple[Statement, ...]:
        return self._first.statements(load)

    def least_load(self, load: Load) -> Load | None:
        return self._first.least_load(load)

    def session_names(self, load: Load) -> Mapping[str, int]:  # noqa: ARG002 - the Protocol's
        return {}

    def start(self, load: Load, folder: str, *, on_parent_death: StopSignal = StopSignal.TERM) -> ClientProcesses:
        loads = divide(load, len(self._places), whole_rates=self._first.capabilities.whole_rates)
        places = self._places[: len(loads)]
        clocks = [self._read_clock(place) for place in places]
        at = self._clock.wall() + _HEAD_START + sum(_EXCHANGES * max(_QUICK, took) for _, took in clocks)
        starts = [at + offset for offset, _ in clocks]
        started: list[Process] = []
        try:
            for place, part, start in zip(places, loads, starts, strict=True):
                own = place.folder(self._places[0].generator, folder)
                hold = ("sh", "-c", _HOLD, "sh", f"{start:.6f}", f"{own}/{_STARTED}")
                held = replace(part, launch=(*hold, *part.launch))
                started += place.driver.start(held, own, on_parent_death=on_parent_death).processes
        except BaseException:
            for process in started:
                process.signal(StopSignal.KILL, group=True)
            raise
        self._under[folder] = _Under(
            places=places, starts=starts, offsets=[0] * len(places), points=[[] for _ in places]
        )
        return ClientProcesses(processes=started)

    def _read_clock(self, place: Place) -> tuple[float, float]:
        """Seconds by which a machine's clock is ahead of the coordinator's, and seconds that asking took."""
        asked, begun = self._clock.wall(), self._clock.monotonic()
        there = place.generator.host.clock().wall
        took = self._clock.monotonic() - begun
        return there - (asked + took / 2), took

    def end(self, process: Process) -> None:  # noqa: ARG002 - the Protocol's
        raise AssertionError("a load from several machines is measured run by run")

    def counting(self, folder: str, marks: str, arm: int) -> Steps[Mapping[str, bytes]]:  # noqa: ARG002 - the Protocol's
        raise AssertionError("a load from several machines is measured run by run")

    def progress(self, folder: str, offset: int) -> tuple[tuple[ProgressPoint, ...], int]:
        """The seconds that all machines have reported; `offset` of these were told before."""
        under = self._under[folder]
        for number, place in enumerate(under.places):
            own = place.folder(self._places[0].generator, folder)
            points, under.offsets[number] = place.driver.progress(own, under.offsets[number])
            under.points[number] += points
        told = add_points(under.points)
        return told[offset:], max(offset, len(told))

    def collect(self, folder: str) -> Mapping[str, bytes]:
        under = self._under.get(folder)
        if under is None:
            return {}
        found, lines = list[Mapping[str, bytes]](), list[str]()
        for place, start in zip(under.places, under.starts, strict=True):
            own = place.folder(self._places[0].generator, folder)
            found.append(place.driver.collect(own))
            path = f"{own}/{_STARTED}"
            said = place.generator.host.read_files((path,)).get(path, b"").decode("ascii", "replace").strip()
            lines.append(render_start(place.generator.host.name, start, said))
        return {**join_evidence(found), STARTS: "".join(lines).encode()}


def divide(load: Load, machines: int, *, whole_rates: bool = False) -> tuple[Load, ...]:
    """The loads of so many machines: clients as evenly as they go, and threads and rate in proportion.

    Machines beyond the number of clients have none.

    Raises:
        UsageError: the driver keeps rates of whole numbers only, and the rate is too low to be divided.
    """
    cell = load.cell
    loads: list[Load] = []
    begun = 0
    for number, clients in enumerate(share_clients(cell.clients, machines)):
        rate = None if cell.rate is None else cell.rate * clients / cell.clients
        if rate is not None and whole_rates:
            rate = _whole_part(cell.rate or 0.0, begun, clients, cell)
        threads = share_threads(cell.threads, clients, cell.clients)
        part = replace(cell, clients=clients, threads=threads, rate=rate)
        loads.append(replace(load, cell=part, seed=load.seed + number * SEEDS_APART))
        begun += clients
    return tuple(loads)


def _whole_part(rate: float, begun: int, clients: int, cell: Cell) -> float:
    """The part of a whole rate for `clients` clients after `begun` others, so that the parts add up."""
    part = float(round(rate * (begun + clients) / cell.clients) - round(rate * begun / cell.clients))
    if part <= 0:
        raise UsageError(
            f"a rate of {rate:.0f} transactions per second is too low to be divided among the client machines",
            where=cell.identity,
            remedy="raise the rate, or let the load come from fewer machines",
        )
    return part
