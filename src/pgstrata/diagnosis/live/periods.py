"""Two windows of a live server side by side, each figure with its error, and no judgement. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Final

from pgstrata.diagnosis.live.changes import choose_cutting, main_changes, rate_changes
from pgstrata.diagnosis.live.explain import find_blockers, make_courses, window_facts
from pgstrata.diagnosis.live.load import split_background, split_load
from pgstrata.diagnosis.live.relations import change_relations
from pgstrata.diagnosis.live.statements import change_calls
from pgstrata.diagnosis.live.uses import change_uses
from pgstrata.model.archive import AROUND_RATES, SERVER_RATES, ArchiveWindow, UseCourses
from pgstrata.model.courses import COURSES
from pgstrata.model.explanation import Change
from pgstrata.model.periods import Periods, Total
from pgstrata.units import Unit

_SUMMED: Final = frozenset({Unit.PER_SECOND, Unit.BYTES_PER_SECOND})


def compare_periods(
    value: ArchiveWindow, reference: ArchiveWindow, uses: tuple[UseCourses, UseCourses] | None
) -> Periods:
    """Both windows side by side.

    Args:
        value: the window.
        reference: the comparison window; both have looks.
        uses: what was counted of the longest statements in the window and in the comparison window; None where one
            of them was not counted.
    """
    cutting = choose_cutting(value, reference, both=True)
    throughput, load, time = main_changes(value, reference, cutting)
    split = split_load(value, reference, cutting)
    server = rate_changes(SERVER_RATES, value, reference, cutting)
    host = rate_changes(AROUND_RATES, value, reference, cutting)
    return Periods(
        window=window_facts(value),
        comparison=window_facts(reference),
        throughput=throughput,
        load=load,
        time=time,
        rows=split.rows,
        waits=split.waits,
        statements=split.statements,
        applications=split.applications,
        blockers=find_blockers(value, reference),
        uses=change_uses(*uses, cutting.memory) if uses is not None else (),
        calls=change_calls(value, reference),
        server=server,
        host=host,
        background=split_background(value, reference, cutting),
        totals=tuple(_totals((*server, *host), value, reference)),
        relations=change_relations(value, reference),
        horizons=(reference.horizons, value.horizons),
        courses=(make_courses(reference), make_courses(value)),
    )


def _totals(changes: Iterable[Change], value: ArchiveWindow, reference: ArchiveWindow) -> Iterator[Total]:
    for change in changes:
        course = COURSES.get(change.name)
        known = math.isfinite(change.value) and math.isfinite(change.reference)
        if course is not None and course.unit in _SUMMED and known:
            yield Total(
                name=change.name,
                value=change.value * _recorded(value),
                reference=change.reference * _recorded(reference),
            )


def _recorded(window: ArchiveWindow) -> int:
    """Seconds of a window that are in no gap."""
    return window.span.seconds - sum(gap.seconds for gap in window.gaps)
