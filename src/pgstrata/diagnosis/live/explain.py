"""A window of a live server explained by another one. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from pgstrata.diagnosis.live.causes import find_causes
from pgstrata.diagnosis.live.changes import (
    EFFECT,
    choose_cutting,
    fell,
    judge,
    keep_familiar,
    main_changes,
    rate_changes,
    throughput_of,
)
from pgstrata.diagnosis.live.leads import around_onset, find_leads
from pgstrata.diagnosis.live.load import Cutting, per_look, split_background, split_load
from pgstrata.diagnosis.live.onset import find_onset
from pgstrata.diagnosis.live.plans import compare_seen_plans
from pgstrata.diagnosis.live.relations import change_relations
from pgstrata.diagnosis.live.statements import change_calls
from pgstrata.model.archive import AROUND_RATES, SERVER_RATES, ArchiveWindow, Blocking, SessionClass, Span
from pgstrata.model.explanation import Courses, Explanation, Outcome, RootBlocker, WindowFacts
from pgstrata.stats.ranks import FloatArray

RUNNING: Final = "running"
_MOST_PIDS: Final = 5
_WITH_ONSET: Final = frozenset({Outcome.INCIDENT, Outcome.STALLED, Outcome.SATURATED, Outcome.OTHER_MIX, Outcome.MORE})


def explain(
    value: ArchiveWindow,
    reference: ArchiveWindow,
    whole: ArchiveWindow | None = None,
    closer: Callable[[Span], ArchiveWindow] | None = None,
) -> Explanation:
    """What a window was against a comparison window, and where its load came from.

    Args:
        value: the window.
        reference: the comparison window; both have looks.
        whole: both and what is around them, for charts, and for when the change began.
        closer: gives a stretch of `whole` in the shortest cells, to see what changed before the load did and what after
            it; None: that is not asked.
    """
    cutting = choose_cutting(value, reference)
    found = _explain(value, reference, whole, _Setting(cutting=cutting))
    if closer is None or whole is None or found.onset is None:
        return found
    near = around_onset(found.onset, whole.span)
    if near is None:
        return found
    leads = find_leads(closer(near), found.onset, (*found.server, *found.host), cutting.memory)
    return replace(found, leads=leads)


def explain_runs(
    value: ArchiveWindow, reference: ArchiveWindow, *, effect: float, paced: bool, blocks: tuple[int, ...] = ()
) -> Explanation:
    """The explanation of two environments, each cell of which is a run.

    What a block does to both of its runs is no difference: runs are paired.

    Args:
        value: the runs of an environment.
        reference: those of another one, in the same blocks and order.
        effect: relative change below which nothing is said to have changed.
        paced: whether transactions begin at a fixed rate. Otherwise more of them come because each takes less time.
        blocks: numbers of the blocks of the runs, for charts.
    """
    cutting = Cutting(lengths=(1, 1), memory=value.cell, paired=True)
    setting = _Setting(cutting=cutting, effect=effect, closed=not paced, timed=False)
    ours, theirs = (replace(make_courses(window), blocks=blocks) for window in (value, reference))
    return replace(_explain(value, reference, None, setting), courses=ours, reference_courses=theirs)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Setting:
    """How windows are compared; `closed`: clients wait for their transactions; `timed`: the windows are times."""

    cutting: Cutting
    effect: float = EFFECT
    closed: bool = False
    timed: bool = True


def _explain(
    value: ArchiveWindow, reference: ArchiveWindow, whole: ArchiveWindow | None, setting: _Setting
) -> Explanation:
    cutting = setting.cutting
    throughput, load, time = main_changes(value, reference, cutting)
    calls = change_calls(value, reference)
    split = split_load(value, reference, cutting)
    _, _, familiar = main_changes(keep_familiar(value, reference), reference, cutting)
    outcome = judge(throughput, load, time, familiar, calls, effect=setting.effect)
    if setting.closed and outcome is Outcome.MORE and fell(time, setting.effect):
        outcome = Outcome.FASTER
    told = outcome in _WITH_ONSET and (load.resolved or outcome is Outcome.STALLED)
    found = Explanation(
        window=window_facts(value),
        comparison=window_facts(reference),
        outcome=outcome,
        throughput=throughput,
        load=load,
        time=time,
        rows=split.rows,
        waits=split.waits,
        statements=split.statements,
        applications=split.applications,
        blockers=find_blockers(value, reference),
        calls=calls,
        server=rate_changes(SERVER_RATES, value, reference, cutting),
        host=rate_changes(AROUND_RATES, value, reference, cutting),
        background=split_background(value, reference, cutting),
        courses=make_courses(whole or value),
        onset=find_onset(whole, value.span, cutting) if whole is not None and told else None,
        relations=change_relations(value, reference),
        horizons=value.horizons,
        plans=compare_seen_plans(value, reference, [change.statement for change in calls], timed=setting.timed),
    )
    return replace(found, causes=find_causes(value, reference, found))


def window_facts(window: ArchiveWindow) -> WindowFacts:
    """How well a window is known."""
    return WindowFacts(
        span=window.span,
        seen=min(1.0, sum(window.looks) / max(1, window.span.seconds)),
        looks=sum(window.looks),
        gaps=window.gaps,
        host_gaps=window.host_gaps,
        events=window.events,
        unit=window.unit,
    )


_Root = SessionClass | None


def find_blockers(value: ArchiveWindow, reference: ArchiveWindow) -> tuple[RootBlocker, ...]:
    """Heads of chains by what they were doing, the one with most sessions behind it first."""
    ours, theirs = _by_root(value.blocked), _by_root(reference.blocked)
    found = []
    for root in dict.fromkeys((*ours, *theirs)):
        mine = ours.get(root, {})
        pids = sorted((pid for pid in _sum_pids(mine) if pid), key=lambda pid: -_sum_pids(mine)[pid])
        held = max((blocking.held for blocking in (mine or theirs.get(root, {}))), default=0)
        found.append(
            RootBlocker(
                root=root,
                pids=tuple(pids[:_MOST_PIDS]),
                held=held,
                value=sum(mine.values()) / max(1, sum(value.looks)),
                reference=sum(theirs.get(root, {}).values()) / max(1, sum(reference.looks)),
            )
        )
    return tuple(sorted(found, key=lambda each: -each.value))


def _by_root(blocked: Mapping[Blocking, int]) -> Mapping[_Root, Mapping[Blocking, int]]:
    found: defaultdict[_Root, dict[Blocking, int]] = defaultdict(dict)
    for blocking, sessions in blocked.items():
        found[blocking.root][blocking] = sessions
    return found


def _sum_pids(blocked: Mapping[Blocking, int]) -> Mapping[int, int]:
    found: defaultdict[int, int] = defaultdict(int)
    for blocking, sessions in blocked.items():
        found[blocking.pid] += sessions
    return found


def make_courses(window: ArchiveWindow) -> Courses:
    """Load by class of wait events, and throughput, by cell."""
    classes: dict[str, FloatArray] = {}
    for session, counts in window.sessions.items():
        if session.is_load:
            name = session.wait_type or RUNNING
            classes[name] = classes.get(name, np.zeros(len(counts))) + np.asarray(counts, dtype=np.float64)
    seen = np.asarray(window.looks) > 0
    ranked = sorted(classes.items(), key=lambda item: -float(item[1].sum()))
    return Courses(
        starts=tuple(window.span.begin + place * window.cell for place in range(len(window.looks))),
        load=tuple((name, tuple(np.where(seen, per_look(sums, window), np.nan).tolist())) for name, sums in ranked),
        throughput=tuple(throughput_of(window).tolist()),
    )
