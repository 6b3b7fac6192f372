"""What observations are asked: by which metric, against what, and what difference counts."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pgstrata.model.answer import ALL_CELLS
from pgstrata.model.experiment import ControlKind
from pgstrata.model.plan import HORIZON
from pgstrata.units import Direction


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Every environment against the baseline by one metric, wherever its values come from.

    `environments` are without the baseline, `cells` identities. `threshold` is a ratio (0.03). `blocks` are those that
    were planned, or that there are; 0 where nothing was measured in blocks. `horizon` are those over which the error
    probability is spent. `floors` hold s0 in log units by cell (or `ALL_CELLS`) where it is valid, `run_seconds` the
    length of a run by cell where runs have one. `primary` is whether the question was declared before the first run;
    others are asked beside it.
    """

    metric: str
    direction: Direction
    threshold: float
    baseline: str
    environments: tuple[str, ...]
    cells: tuple[str, ...]
    blocks: int
    controls: Mapping[str, ControlKind] = field(default_factory=dict)
    floors: Mapping[str, float] = field(default_factory=dict)
    run_seconds: Mapping[str, float] = field(default_factory=dict)
    primary: bool = True
    horizon: int = HORIZON

    @property
    def sign(self) -> float:
        """Turns ln(value / baseline value) so that above zero is better: 1 or -1."""
        return self.direction.sign

    @property
    def headline_cell(self) -> str:
        """Where the headlines are: the only cell, or all of them."""
        return self.cells[0] if len(self.cells) == 1 else ALL_CELLS

    def cells_of(self, cell: str) -> tuple[str, ...]:
        """The cells behind a cell of an answer: all of them, or itself."""
        return self.cells if cell == ALL_CELLS else (cell,)
