"""All that will be done, before anything is touched."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pgstrata.model.experiment import Environment, Experiment, HostSpec, Interleave, Placement
from pgstrata.model.floor import Floor
from pgstrata.model.reasons import Reason
from pgstrata.units import render_duration

HORIZON: Final = 60
"""Blocks over which the error probability of a comparison is spent, and after which nothing is measured."""
FORMER_HORIZON: Final = 24
"""The horizon of studies begun by versions before 0.2."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCapacity:
    """What a plan must fit into: bytes of memory, CPUs, free bytes where datasets lie.

    `elsewhere` is the memory of other machines on which servers run, as far as it is known.
    """

    memory: int
    cpus: int
    free_disk: int
    elsewhere: Mapping[HostSpec, int] = field(default_factory=dict)

    def memory_of(self, host: HostSpec) -> int | None:
        """Bytes of memory of a machine; None where it is not known."""
        return self.elsewhere.get(host) if host.remote else self.memory


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRun:
    """One run to be made. `identity` is b03/pg18/simple-update-s100-c16; `seed` is shared by the arms of a block."""

    identity: str
    block: int
    environment: str
    cell: str
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One cell within a visit: one run for each resident of the visit, in random order.

    With one resident this is a single run; with several the servers are all up and take turns in slices.
    """

    cell: str
    runs: tuple[PlannedRun, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """The stretch in which the layers below the server are up for its residents (environment names)."""

    identity: str
    residents: tuple[str, ...]
    stages: tuple[Stage, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Every environment once, in an order drawn at random from the seed."""

    number: int
    visits: tuple[Visit, ...]

    @property
    def runs(self) -> tuple[PlannedRun, ...]:
        """All runs of the block in the order of execution."""
        return tuple(run for visit in self.visits for stage in visit.stages for run in stage.runs)


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetNeed:
    """A dataset that the plan needs: one per host, server build and workload data; sizes are estimates in bytes.

    `environments` are the names of those that share it, empty in plans of former versions. `scale` is 0 for data of
    one's own, which have none.
    """

    server: str
    workload: str
    scale: int
    bytes: int
    environments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What the plan will cost: seconds, and bytes on disk at the peak."""

    seconds_per_block: float
    seconds_building: float
    seconds_total: float
    disk_bytes: int
    datasets: tuple[DatasetNeed, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """How the environments of a block take turns in one cell, and why so.

    In slices, `rounds` rounds of one slice of `slice_seconds` for each environment are measured after `discarded`
    further rounds, which are thrown away. With `settle`, what an environment wrote is flushed before the next turn.
    `placement` is free or paired, for environments that do not have a placement as their level; `free_because` says why
    sessions are not paired although nobody asked for it. In blocks up to `stretched` each environment first runs alone
    for a moment without a log, from which the absolute throughput comes; None is in every block.
    `writes` is None in plans of former versions.
    """

    cell: str
    interleave: Interleave
    reason: Reason | None = None
    slice_seconds: float = 0.0
    rounds: int = 0
    discarded: int = 0
    settle: bool = False
    placement: Placement = Placement.FREE
    free_because: Reason | None = None
    writes: bool | None = None
    stretched: int | None = None

    @property
    def sliced(self) -> bool:
        """Whether environments take turns in slices."""
        return self.interleave is Interleave.SLICES

    @property
    def only_reads(self) -> bool:
        """Whether the cell is known to write nothing; of former versions only slices tell."""
        return not self.writes if self.writes is not None else self.sliced and not self.settle

    def stretches(self, block: int) -> bool:
        """Whether the warm-up of that block is there; the unlogged stretch where environments take turns."""
        return self.stretched is None or block <= self.stretched

    def describe(self, run: float, environments: Sequence[Environment] = ()) -> str:
        """For floors and people.

        Args:
            run: the cell's run length in seconds.
            environments: that may have a placement of their own; without them that of the cell is said.
        """
        pairs = {self.pairs(each) for each in environments} or {self.placement is Placement.PAIRED}
        some = " in some environments" if len(pairs) > 1 else ""
        paired = f", sessions paired{some}" if True in pairs else ""
        if self.sliced:
            return f"{self.rounds} slices of {render_duration(self.slice_seconds)}{paired}"
        return f"runs of {render_duration(run)}{paired}"

    def pairs(self, environment: Environment) -> bool:
        """Whether client and backend of each session are put on one CPU in that environment."""
        asked = environment.placement
        return (self.placement if asked in {None, Placement.AUTO} else asked) is Placement.PAIRED


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All that will be done, before anything is touched. `identity` is a hash of everything that fixes the plan.

    `horizon` is the number of blocks over which comparisons spend their error probability: there may be fewer `blocks`,
    and a study can be continued up to it. `designs` has an entry for each cell; `floors` hold the noise floor of a
    cell, by its identity, where one is known: frozen with the plan, never derived from its own study. `notes` are what
    is to be known of the plan itself; what was chosen for the experiment is noted there.
    """

    identity: str
    experiment: Experiment
    blocks: tuple[Block, ...]
    forecast: Forecast
    designs: tuple[Design, ...] = ()
    floors: Mapping[str, Floor] = field(default_factory=dict)
    horizon: int = FORMER_HORIZON
    notes: tuple[Reason, ...] = ()

    def design(self, cell: str) -> Design:
        """The design of the cell of that identity; run by run where nothing was said."""
        for design in self.designs:
            if design.cell == cell:
                return design
        return Design(cell=cell, interleave=Interleave.RUNS)

    @property
    def interleave(self) -> Interleave:
        """What all designs have in common; AUTO where some cells are measured in slices and some run by run."""
        ways = {design.interleave for design in self.designs} or {Interleave.RUNS}
        return ways.pop() if len(ways) == 1 else Interleave.AUTO

    @property
    def runs(self) -> tuple[PlannedRun, ...]:
        """All planned runs in order."""
        return tuple(run for block in self.blocks for run in block.runs)
