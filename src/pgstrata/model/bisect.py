"""A search for the step between two neighbouring levels: what was compared, and what came of it."""

from dataclasses import dataclass
from enum import StrEnum

from pgstrata.errors import ExitCode
from pgstrata.model.answer import Comparison
from pgstrata.model.experiment import Experiment


class Outcome(StrEnum):
    """What a search came to.

    RANGE: the levels that are left in between could not be measured. SAME: the ends do not differ.
    """

    FOUND = "found"
    RANGE = "range"
    SAME = "same"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A commit: its full hash, its author's date (ISO 8601), the first line of its message.

    `merged` are the hashes of what it merges, separated by blanks; empty where it is no merge.
    """

    hash: str
    date: str
    subject: str
    merged: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BisectStep:
    """One level as it was compared with the first end, in the study of that name.

    `side` is what it was found to be like; `comparison` is None, and `reason` says why, where it was skipped or there
    was no time for it. `threshold` is a ratio.
    """

    level: str
    side: str
    comparison: Comparison | None
    threshold: float
    study: str
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bisection:
    """A search along `levels`, whose names are in order; `commits` are there where levels are commits.

    The step lies between the places `before` and `after`. `ends` compares the last level with the first; `reason` says
    why a search was not finished, where no comparison does.
    """

    experiment: Experiment
    factor: str
    levels: tuple[str, ...]
    commits: tuple[Commit, ...]
    outcome: Outcome
    ends: BisectStep
    steps: tuple[BisectStep, ...]
    before: int
    after: int
    folder: str
    reason: str = ""

    @property
    def skipped(self) -> tuple[BisectStep, ...]:
        """Levels that could not be measured."""
        return tuple(step for step in self.steps if step.side == "skipped")

    @property
    def code(self) -> ExitCode:
        """The exit code: undecided as well where it is not known which of several levels it is."""
        return ExitCode.DONE if self.outcome in {Outcome.FOUND, Outcome.SAME} else ExitCode.UNDECIDED
