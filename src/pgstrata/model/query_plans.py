"""How a server would carry out statements of a workload or of a live server: plans as EXPLAIN shows them."""

from dataclasses import dataclass
from enum import StrEnum


class PlannedWith(StrEnum):
    """What a statement was planned with: parameters of any value (a generic plan), or values put in their place."""

    PARAMETERS = "parameters"
    VALUES = "values"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryPlan:
    """The plan of one statement, as its server gave it before a run.

    `statement` has $1, $2... where the script has variables and ? where it has constants, with a number behind it where
    others are alike but for constants. `text` is what EXPLAIN said, without constants; `shape` the part of it that
    makes one plan another: its nodes with relations and indexes in their order, workers planned, JIT; without costs,
    estimates and conditions. `error` is why there is no plan; then `shape` and `text` are empty.
    """

    statement: str
    planned_with: PlannedWith
    shape: tuple[str, ...]
    text: str
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanUse:
    """A plan and in how many runs of an environment and cell it was found; `plan` is as in the first of them."""

    environment: str
    cell: str
    plan: QueryPlan
    runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanDifference:
    """A statement whose usual plan in an environment has another shape than in the one it is compared with.

    `changes` say how: `Index Scan using a on t -> Seq Scan on t`, `JIT is used`.
    """

    environment: str
    reference: str
    cell: str
    plan: QueryPlan
    reference_plan: QueryPlan
    changes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlansCompared:
    """The plans of one environment and cell, compared with those of another.

    `alike` is the number of statements whose plans do not differ. `unsteady` are statements that had more than one plan
    in the runs of one of the two. `unexplained` are those without a plan in one of the two, each with the reason.
    """

    environment: str
    reference: str
    cell: str
    alike: int
    differences: tuple[PlanDifference, ...]
    unsteady: tuple[str, ...]
    unexplained: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LivePlan:
    """The plan of a statement of a live server.

    `shape` stands for its nodes with relations and indexes in their order: plans with the same one are alike.
    `outline` has these nodes, one a line, indented by depth. `problem` is why there is no plan: a code of
    `PlanProblem`, or what the server said; then both are empty.
    """

    shape: str = ""
    outline: tuple[str, ...] = ()
    problem: str = ""


class PlanSource(StrEnum):
    """Where a plan comes from.

    GENERIC: asked for, for parameters of any value. LOGGED: of executions that auto_explain logged.
    """

    GENERIC = "generic"
    LOGGED = "logged"


class PlanProblem(StrEnum):
    """Why a server was not asked for a plan.

    ELSEWHERE: the statement runs in another database than the recorder's. CONSTANTS: its text has constants or several
    statements. LENGTH: it is too long. TEXT: its text is not known. SUPERUSER: the recorder is one, and planning may
    run functions of others.
    """

    ELSEWHERE = "other database"
    CONSTANTS = "constants"
    LENGTH = "length"
    TEXT = "no text"
    SUPERUSER = "superuser"


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenPlan:
    """A plan of a statement that was seen so many `times` from `first` to `last`, Unix seconds.

    GENERIC ones are those of every look in that time. Of LOGGED ones others may have been seen meanwhile.
    """

    statement: str
    first: int
    last: int
    plan: LivePlan
    source: PlanSource = PlanSource.GENERIC
    times: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanChange:
    """A statement whose plan in a window has another shape than in the comparison window.

    `changes` say how, as those of `PlanDifference`. It changed after the moment `after`, at which the earlier of both
    plans was last seen, and not later than `by`, when the later one was first seen; Unix seconds. None: it is not
    known, because both were seen in between, or the windows are environments of a study, which take turns.
    """

    statement: str
    value: SeenPlan
    reference: SeenPlan
    changes: tuple[str, ...]
    after: int | None
    by: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LivePlans:
    """The plans of two windows: `alike` is the number of statements whose plan is the same in both.

    `unknown` are statements of the window without a plan, each with the reason.
    """

    changes: tuple[PlanChange, ...] = ()
    alike: int = 0
    unknown: tuple[SeenPlan, ...] = ()
