"""What the bank holds: conditions, the kinds of pairs that are measured in each, and how many visits are wanted."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from bank.visits import Visit
from live import WORK, WRITING_WORK

from pgstrata.model.answer import Verdict
from pgstrata.plan.design import MOST_ROUNDS, rounds_of

EQUAL: Final = "equal"
# `shared` is a machine on which somebody else works as it happens; what that was is kept with each visit.
SIDES: Final = ("quiet", "busy", "shared")
PLANNED_SIDES: Final = ("quiet", "busy")
# Sessions paired with CPUs and free, both in slices; and run by run, placed as by default.
DESIGNS: Final = ("paired", "free", "runs")
WORKLOADS: Final = ("select-only", "simple-update")
CLIENTS: Final = (1, 2, 4, 8, 16)
# Of a condition, in equal parts of the kinds that are asked about; and of each kind that shows nothing but the truth.
FOR_CONDITION: Final = 150
FOR_VALIDATION: Final = 24
# In percent, of visits that answer no question with a threshold of its own.
_THRESHOLD: Final = 3.0
_ASKED_CLIENTS: Final = frozenset({2, 4})
EXPERIMENT: Final = """
question = "How soon is it seen?"
seed = {seed}
threshold = "{threshold:g} %"
interleave = "{interleave}"
[[environments]]
name = "plain"
server = "18"
options.extra_work = 0
[[environments]]
name = "other"
{other}
[[cells]]
workload = "{workload}"
scale = 16
clients = {clients}
run = "10s"
placement = "{placement}"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """Where visits can be compared with each other; `side` is what else the machine does."""

    workload: str
    clients: int
    design: str
    side: str

    @property
    def name(self) -> str:
        """Name of its data file and folder."""
        return f"{self.workload}-{self.clients}-{self.design}-{self.side}"

    @staticmethod
    def of(name: str) -> Condition:
        """ValueError where it is no name of a condition."""
        workload, clients, design, side = name.rsplit("-", 3)
        return Condition(workload=workload, clients=int(clients), design=design, side=side)


def _environment(server: str, work: int = 0) -> str:
    return f'server = "{server}"\noptions.extra_work = {work}'


# The second environment of each kind of pair that only reads; a number is the slowdown in percent, about. The protocol
# is a property of the cell: planning anew for each execution is what the simple one mainly adds.
_READING: Final[Mapping[str, str]] = {
    EQUAL: _environment("18"),
    "1": _environment("18", WORK[1]),
    "2": _environment("18", WORK[2]),
    "5": _environment("18", WORK[5]),
    "15": _environment("18", 920),
    "16": _environment("16"),
    "17": _environment("17"),
    "planned-anew": _environment("18") + '\nsettings.plan_cache_mode = "force_custom_plan"',
}
KINDS: Final = tuple(_READING)
TITLES: Final = {EQUAL: "equal", "16": "16 against 18", "17": "17 against 18", "planned-anew": "planned anew"}


def other_environment(condition: Condition, kind: str) -> str | None:
    """Lines of the second environment of a kind of pair; None where a condition has no such pair.

    The same work costs a writing cell more throughput the more clients wait for the CPUs instead of the disk.
    """
    if condition.workload != "simple-update":
        return _READING[kind]
    work = {EQUAL: 0, "5": WRITING_WORK.get(condition.clients)}.get(kind)
    return None if work is None else _environment("18", work)


def title_of(kind: str) -> str:
    """As tables call it."""
    return TITLES.get(kind, f"about {kind} % slower")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked of the visits of one kind: at which threshold (percent), and the minutes it may take by side.

    A difference is asked for with a threshold below it: the default of 3 % for 5 %, half of it for less.
    """

    name: str
    kind: str
    threshold: float
    minutes: Mapping[str, float]
    workload: str = "select-only"

    @property
    def right(self) -> Verdict:
        """The verdict that is true."""
        return Verdict.EQUIVALENT if self.kind == EQUAL else Verdict.WORSE

    @property
    def rounds(self) -> int:
        """Those of a visit in slices of a study that asks it."""
        return _rounds(self.workload, self.threshold)


QUESTIONS: Final = (
    Question(name="5 %", kind="5", threshold=3.0, minutes={"quiet": 1.5, "busy": 3.0}),
    Question(name="2 %", kind="2", threshold=1.0, minutes={"quiet": 3.0, "busy": 8.0}),
    Question(name="1 %", kind="1", threshold=0.5, minutes={"quiet": 6.0}),
    Question(name="equal within 2 %", kind=EQUAL, threshold=2.0, minutes={"quiet": 3.0}),
    Question(name="equal within 1 %", kind=EQUAL, threshold=1.0, minutes={"quiet": 6.0}),
    Question(name="5 %", kind="5", threshold=3.0, minutes={"quiet": 4.0}, workload="simple-update"),
)


def _rounds(workload: str, threshold: float) -> int:
    return MOST_ROUNDS if workload == "simple-update" else rounds_of(2, threshold / 100)


def for_shares(workload: str) -> int:
    """Visits of one kind that is asked about, until shares are complete: its part of those of the condition."""
    return math.ceil(FOR_CONDITION / len({each.kind for each in QUESTIONS if each.workload == workload}))


def wanted_visits(condition: Condition, kind: str) -> int:
    """Visits until a row is complete; 0 for what nothing is made of."""
    asked = any(each.kind == kind and each.workload == condition.workload for each in QUESTIONS)
    shares = for_shares(condition.workload)
    if other_environment(condition, kind) is None:
        return 0
    if condition.workload != "select-only":
        fits = asked and (condition.design, condition.side) == ("paired", "quiet") and kind != EQUAL
        return shares if fits and condition.clients in _ASKED_CLIENTS else 0
    if condition.design == "runs":
        return shares if asked and condition.clients == 2 else 0
    if asked and condition.clients in _ASKED_CLIENTS:
        return shares
    return FOR_VALIDATION if kind == EQUAL or condition.clients in {*_ASKED_CLIENTS, 16} else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Visits of one kind to be measured in a condition, up to a number."""

    condition: Condition
    kind: str
    visits: int

    @property
    def threshold(self) -> float:
        """The finest in percent of the questions that these visits answer: fine ones have more rounds."""
        place, clients = (self.condition.workload, self.kind), self.condition.clients
        asked = [each.threshold for each in QUESTIONS if (each.workload, each.kind) == place]
        return min(asked, default=_THRESHOLD) if clients in _ASKED_CLIENTS else _THRESHOLD

    @property
    def rounds(self) -> int:
        """Those that a visit needs to count; 0 run by run."""
        return 0 if self.condition.design == "runs" else _rounds(self.condition.workload, self.threshold)

    def takes(self, visit: Visit) -> bool:
        """Whether a visit of its condition counts: it is of that kind, and has rounds enough."""
        return visit.kind == self.kind and len(visit.rounds) >= self.rounds

    def experiment(self, seed: int, threshold: float | None = None) -> str:
        """The experiment file, by default at the threshold of these visits; ValueError where there is no such pair."""
        runs, other = self.condition.design == "runs", other_environment(self.condition, self.kind)
        if other is None:
            raise ValueError(f"{self.condition.name} has no pairs of the kind {self.kind}")
        return EXPERIMENT.format(
            seed=seed,
            threshold=self.threshold if threshold is None else threshold,
            interleave="runs" if runs else "slices",
            other=other,
            workload=self.condition.workload,
            clients=self.condition.clients,
            placement="auto" if runs else self.condition.design,
        )


def planned_tasks(sides: Sequence[str] = PLANNED_SIDES) -> Iterator[Task]:
    """Everything that the tables are made of."""
    for workload, clients, design, side, kind in itertools.product(WORKLOADS, CLIENTS, DESIGNS, sides, KINDS):
        condition = Condition(workload=workload, clients=clients, design=design, side=side)
        if number := wanted_visits(condition, kind):
            yield Task(condition=condition, kind=kind, visits=number)
