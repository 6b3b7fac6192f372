"""What pgstrata itself says of a recording, by its own code: the first causes of a span, and incidents found unasked.

This alone knows the product's functions; evaluation knows the values of this module.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from incidents.truth import Injection, Kind

from pgstrata.app.explain import load_explanation
from pgstrata.errors import PgstrataError

RIGHT: Final[Mapping[Kind, frozenset[str]]] = {
    Kind.HOT_ROWS: frozenset({"LOCK_HELD"}),
    Kind.IDLE_BLOCKER: frozenset({"IDLE_IN_TRANSACTION"}),
    Kind.DROPPED_INDEX: frozenset({"MORE_BLOCKS"}),
    Kind.STALE_STATISTICS: frozenset({"MORE_BLOCKS"}),
    Kind.SMALL_CACHE: frozenset({"CACHE"}),
    Kind.WAL_BURST: frozenset({"WAL_BURST"}),
    Kind.CPU_QUOTA: frozenset({"CPU_LIMIT"}),
    # every flush of WAL is throttled, and so is every read: either name is right
    Kind.IO_THROTTLE: frozenset({"SLOW_WAL", "SLOW_IO"}),
    Kind.NOISY_NEIGHBOUR: frozenset({"NEIGHBOUR"}),
    Kind.CONNECTION_STORM: frozenset({"CONNECTIONS"}),
    Kind.HELD_VACUUM: frozenset({"OLD_TRANSACTION"}),
}
"""Names of `CauseKind` that are right for what was injected; kinds that are no incident have none."""
ALARM_RATE: Final = 1 / (7 * 86_400)
"""False alarms per second that the detector is allowed: one a week."""
SLOWER: Final = frozenset({"INCIDENT", "STALLED"})
"""Names of `Outcome` that say that transactions took longer for another reason than that more came."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedCause:
    """A cause as the product names it: its `CauseKind`, texts of its statements, and the application of its session."""

    kind: str
    statements: tuple[str, ...] = ()
    application: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What `explain` says of a span: its `Outcome` and the causes, the first one first."""

    outcome: str
    causes: tuple[NamedCause, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """An incident found unasked, Unix seconds: `alarm` is when it was told; `cause` what is named with it, if any."""

    begin: float
    end: float
    alarm: float
    cause: str = ""


def explains_causes() -> bool:
    """Whether this pgstrata names causes."""
    return importlib.util.find_spec("pgstrata.model.causes") is not None


def finds_incidents() -> bool:
    """Whether this pgstrata finds incidents by itself."""
    return importlib.util.find_spec("pgstrata.app.incidents") is not None


def tell(archive: Path, span: tuple[float, float], against: tuple[float, float]) -> Told:
    """Explain a span of an archive against another, both in Unix seconds."""
    begin, end = (f"@{round(each)}" for each in span)
    try:
        found = load_explanation(archive, begin, end, f"@{round(against[0])}..@{round(against[1])}")
    except PgstrataError as error:
        return Told(outcome=f"error: {error}", causes=())
    causes: Sequence[Any] = getattr(found.explanation, "causes", ())
    return Told(outcome=found.explanation.outcome.name, causes=tuple(_named(cause, found.texts) for cause in causes))


def _named(cause: Any, texts: Mapping[str, str]) -> NamedCause:
    return NamedCause(
        kind=cause.kind.name,
        statements=tuple(texts.get(key, "") for key in cause.statements),
        application=cause.session.application if cause.session else "",
    )


def find_unasked(archive: Path) -> Sequence[Found]:
    """Incidents that the product finds in the whole archive, in order of time; one alarm a week is allowed."""
    found: Any = importlib.import_module("pgstrata.app.incidents").load_incidents(archive, None, None, rate=ALARM_RATE)
    return [
        Found(
            begin=incident.begin,
            end=found.detected.span.end if incident.end is None else incident.end,
            alarm=incident.found,
            cause=_first_cause(explained),
        )
        for incident, explained in zip(found.detected.incidents, found.explained, strict=True)
    ]


def _first_cause(explained: Any) -> str:
    causes: Sequence[Any] = getattr(explained.explanation, "causes", ()) if explained is not None else ()
    return str(causes[0].kind.name) if causes else ""


def is_right(injection: Injection, told: Told) -> bool:
    """Whether the first cause is what was injected; of no incident, whether none is said to be there."""
    if injection.kind not in RIGHT:
        return told.outcome not in SLOWER and not told.outcome.startswith("error")
    return bool(told.causes) and told.causes[0].kind in RIGHT[injection.kind]


def names_concerned(injection: Injection, told: Told) -> bool | None:
    """Whether the first cause shows the statement or session that was concerned; None where there is none to show."""
    if not told.causes or not (injection.statement or injection.application):
        return None
    first, wanted = told.causes[0], " ".join(injection.statement.lower().split())
    shown = any(" ".join(text.lower().split()).startswith(wanted) for text in first.statements) if wanted else False
    return shown or (bool(injection.application) and first.application == injection.application)
