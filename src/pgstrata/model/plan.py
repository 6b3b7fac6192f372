"""All that will be done, before anything is touched."""

from __future__ import annotations

from dataclasses import dataclass

from pgstrata.model.experiment import Experiment, Interleave


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCapacity:
    """What a plan must fit into: bytes of memory, CPUs, free bytes where datasets lie."""

    memory: int
    cpus: int
    free_disk: int


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

    With one resident this is a single run; with several the servers are all up and take turns.
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
    """A dataset that the plan needs: one per server build and workload data; sizes are estimates in bytes."""

    server: str
    workload: str
    scale: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What the plan will cost: seconds, and bytes on disk at the peak."""

    seconds_per_block: float
    seconds_building: float
    seconds_total: float
    disk_bytes: int
    datasets: tuple[DatasetNeed, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All that will be done, before anything is touched. `identity` is a hash of everything that fixes the plan."""

    identity: str
    experiment: Experiment
    interleave: Interleave
    interleave_reason: str
    blocks: tuple[Block, ...]
    forecast: Forecast

    @property
    def runs(self) -> tuple[PlannedRun, ...]:
        """All planned runs in order."""
        return tuple(run for block in self.blocks for run in block.runs)
