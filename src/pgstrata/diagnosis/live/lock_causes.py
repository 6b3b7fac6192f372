"""Sessions that wait for a lock, by what the head of their chain was doing. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from pgstrata.diagnosis.live.case import LOCK, Case, Pair, event_of, evidence, wait_evidence
from pgstrata.model.archive import ArchiveWindow, Blocking, SessionClass
from pgstrata.model.causes import Cause, CauseKind, Evidence, EvidenceCode

_MOSTLY: Final = 0.5
_NEARLY: Final = 0.8
_LONG: Final = 2
"""Seconds for which a transaction is open that are more than the pause between two of its statements."""
_MOST_PIDS: Final = 5
_RELATION: Final = "relation"
_MOST_STATEMENTS: Final = 3


@dataclass(slots=True)
class _Heads:
    """Heads of one application: sessions behind them, mean over the looks of each window."""

    behind: float = 0.0
    before: float = 0.0
    idle: float = 0.0
    long_idle: float = 0.0
    relation: float = 0.0
    driven: float = 0.0
    held: int = 0
    roots: defaultdict[SessionClass, float] = field(default_factory=lambda: defaultdict(float))
    pids: defaultdict[int, float] = field(default_factory=lambda: defaultdict(float))
    waiting: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))


_Head = tuple[str, str, str]
"""Kind, role and application; all empty where the head was not seen."""
_UNSEEN: Final = ("", "", "")


def lock_causes(case: Case) -> Iterator[Cause]:
    """A cause for the heads of each application.

    Heads whose transactions had been open for seconds and that were idle in most samples were idle, and so were those
    that were idle in nearly all; others were at work, also where their client asked for the next statement in between.
    The waits for locks are shared out by the sessions behind each: the recorder asks only for some of them. What waits
    behind a working head that itself waits for something that became slow is left to that (`Case.driven`).
    """
    groups = _join_unseen(_heads(case))
    extras = {head: case.extra_of(Pair(value=each.behind, reference=each.before)) for head, each in groups.items()}
    whole = sum(extra for extra in extras.values() if extra > 0)
    locked = case.extra_of(case.load_on(LOCK))
    if whole <= 0 or locked <= 0:
        return
    for head, extra in extras.items():
        heads = groups[head]
        load = locked * extra / whole - heads.driven
        if extra > 0 and load > 0:
            yield _cause(case, heads, load)


def _cause(case: Case, heads: _Heads, load: float) -> Cause:
    root = max(heads.roots, key=lambda each: heads.roots[each], default=None)
    kind = _kind(heads, root)
    if kind is CauseKind.IDLE_IN_TRANSACTION:
        idle = {each: behind for each, behind in heads.roots.items() if each.is_idle_in_transaction}
        root = max(idle, key=lambda each: idle[each])
    found = case.cause(
        kind, load,
        evidence(EvidenceCode.BEHIND, Pair(value=heads.behind, reference=heads.before)),
        Evidence(code=EvidenceCode.OPEN, value=heads.held) if heads.held else None,
        *wait_evidence(case, LOCK),
        statements=tuple(sorted(filter(None, heads.waiting), key=lambda key: -heads.waiting[key]))[:_MOST_STATEMENTS],
    )  # fmt: skip
    pids = sorted(filter(None, heads.pids), key=lambda pid: -heads.pids[pid])
    return replace(found, session=root, pids=tuple(pids[:_MOST_PIDS]))


def _kind(heads: _Heads, root: SessionClass | None) -> CauseKind:
    if root is not None and not root.kind:
        return CauseKind.PREPARED
    if heads.long_idle > _MOSTLY * heads.behind or heads.idle > _NEARLY * heads.behind:
        return CauseKind.IDLE_IN_TRANSACTION
    return CauseKind.RELATION_LOCK if heads.relation > _MOSTLY * heads.behind else CauseKind.LOCK_HELD


def _heads(case: Case) -> dict[_Head, _Heads]:
    found: defaultdict[_Head, _Heads] = defaultdict(_Heads)
    looks, before = (max(1, sum(window.looks)) for window in (case.value, case.reference))
    for blocking, sessions in case.value.blocked.items():
        _add(found[_head(blocking)], blocking, sessions / looks)
    for blocking, sessions in case.reference.blocked.items():
        found[_head(blocking)].before += sessions / before
    _add_driven(case, found)
    return dict(found)


def _add(heads: _Heads, blocking: Blocking, behind: float) -> None:
    heads.behind += behind
    heads.held = max(heads.held, blocking.held)
    heads.pids[blocking.pid] += behind
    heads.waiting[blocking.waiting.statement] += behind
    heads.relation += behind if blocking.waiting.event == _RELATION else 0.0
    if blocking.root is not None:
        heads.roots[blocking.root] += behind
        idle = behind if blocking.root.is_idle_in_transaction else 0.0
        heads.idle += idle
        heads.long_idle += idle if blocking.held >= _LONG else 0.0


def _add_driven(case: Case, found: Mapping[_Head, _Heads]) -> None:
    """Divide what is left to slow events among the heads that waited for these."""
    by_event = _behind_events(case.value, case.driven)
    for blocking, sessions in case.value.blocked.items():
        event = _slow_event(blocking, case.driven)
        if event is not None:
            found[_head(blocking)].driven += case.driven[event] * sessions / by_event[event]


def _behind_events(window: ArchiveWindow, driven: Mapping[str, float]) -> Mapping[str, int]:
    found: defaultdict[str, int] = defaultdict(int)
    for blocking, sessions in window.blocked.items():
        event = _slow_event(blocking, driven)
        if event is not None:
            found[event] += sessions
    return found


def _slow_event(blocking: Blocking, driven: Mapping[str, float]) -> str | None:
    root = blocking.root
    if root is None or not root.kind or root.is_idle_in_transaction:
        return None
    event = event_of(root.wait_type, root.event)
    return event if event in driven else None


def _head(blocking: Blocking) -> _Head:
    root = blocking.root
    return _UNSEEN if root is None else (root.kind or root.state, root.role, root.application)


def _join_unseen(groups: dict[_Head, _Heads]) -> dict[_Head, _Heads]:
    """Heads that were not seen were gone at once: they are counted to those at work that blocked most."""
    unseen = groups.get(_UNSEEN)
    working = [head for head, each in groups.items() if head != _UNSEEN and each.idle <= _MOSTLY * each.behind]
    if unseen is None or not working:
        return groups
    most = max(working, key=lambda head: groups[head].behind)
    joined, seen = groups.pop(_UNSEEN), groups[most]
    seen.behind += joined.behind
    seen.before += joined.before
    seen.relation += joined.relation
    return groups
