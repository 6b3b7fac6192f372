"""What an experiment has measured so far."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pgstrata.model.experiment import Cell
from pgstrata.model.plan import Plan
from pgstrata.model.query_plans import PlanUse
from pgstrata.model.runs import RunRecord
from pgstrata.model.server import Fingerprint


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """Everything that one experiment has measured so far, without the raw evidence."""

    name: str
    plan: Plan
    runs: tuple[RunRecord, ...]
    host: Fingerprint
    client: Fingerprint
    environments: Mapping[str, Fingerprint]
    created: str
    version: str
    networks: Mapping[str, Fingerprint] = field(default_factory=dict)
    """How far away servers on other machines are, by environment: clock offset and round trip."""
    rates: Mapping[str, float] = field(default_factory=dict)
    """Transactions per second of cells whose rate is a share of the slowest maximum, by identity."""
    maxima: Mapping[str, float] = field(default_factory=dict)
    """Maximum rates of environments, and what ladders were climbed by; by `sources.rates.maximum_key`."""
    beyond: tuple[Cell, ...] = ()
    """Cells that are not measured, because throughput falls before them in every environment."""
    query_plans: tuple[PlanUse, ...] = ()
    """Every plan that was found, by environment and cell, in the order of the statements; the usual one first."""

    @property
    def measured_blocks(self) -> int:
        """Number of blocks in which something was measured."""
        return len({run.block for run in self.runs})
