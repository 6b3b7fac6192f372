"""A window of a live server by itself. Pure."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np

from pgstrata.diagnosis.live.changes import throughput_of
from pgstrata.diagnosis.live.explain import find_blockers, make_courses, window_facts
from pgstrata.diagnosis.live.relations import per_second
from pgstrata.model.archive import AROUND_RATES, SERVER_RATES, ArchiveWindow
from pgstrata.model.attribution import Part
from pgstrata.model.profile import LoadShare, Profile

MOST_ROWS: Final = 30


def profile(window: ArchiveWindow) -> Profile:
    """What a window holds; it has looks."""
    shares = _shares(window)
    load = math.fsum(share.value for share in shares)
    rates = throughput_of(window)
    known = np.isfinite(rates)
    throughput = float(rates[known].mean()) if known.any() else math.nan
    return Profile(
        window=window_facts(window),
        throughput=throughput,
        load=load,
        time=load / throughput if throughput > 0 else math.nan,
        rows=_fold(shares),
        waits=_together(shares, lambda share: LoadShare(part=share.part, event=share.event)),
        statements=_together(shares, lambda share: LoadShare(part=None, statement=share.statement)),
        applications=_together(shares, lambda share: LoadShare(part=None, application=share.application)),
        uses=tuple(sorted(window.statements.items(), key=lambda item: -item[1].seconds)),
        counted=window.counted,
        rates=tuple(
            (name, float(np.nanmean(window.rates[name])))
            for name in (*SERVER_RATES, *AROUND_RATES)
            if name in window.rates
        ),
        blockers=find_blockers(window, replace(window, blocked={})),
        courses=make_courses(window),
        relations=tuple(
            (relation, per_second(use, window.relations_counted or 1.0))
            for relation, use in sorted(window.relations.items(), key=lambda item: -item[1].work)
        ),
        horizons=window.horizons,
    )


def _shares(window: ArchiveWindow) -> list[LoadShare]:
    """Each wait event, statement and application, the largest first."""
    looks = sum(window.looks)
    found: defaultdict[LoadShare, int] = defaultdict(int)
    for session, counts in window.sessions.items():
        if session.is_load:
            event = f"{session.wait_type}/{session.event}" if session.wait_type else ""
            share = LoadShare(
                part=Part.WAIT if event else Part.RUNNING,
                event=event,
                statement=session.statement,
                application=session.application,
            )
            found[share] += sum(counts)
    shares = [replace(share, value=samples / looks, samples=samples) for share, samples in found.items()]
    return sorted(shares, key=lambda share: -share.samples)


def _fold(shares: list[LoadShare]) -> tuple[LoadShare, ...]:
    kept, rest = shares[:MOST_ROWS], shares[MOST_ROWS:]
    return (*kept, _sum(LoadShare(part=None), rest)) if rest else tuple(kept)


def _together(shares: list[LoadShare], name: Callable[[LoadShare], LoadShare]) -> tuple[LoadShare, ...]:
    groups: defaultdict[LoadShare, list[LoadShare]] = defaultdict(list)
    for share in shares:
        groups[name(share)].append(share)
    return tuple(sorted((_sum(each, members) for each, members in groups.items()), key=lambda share: -share.samples))


def _sum(name: LoadShare, members: list[LoadShare]) -> LoadShare:
    value = math.fsum(share.value for share in members)
    return replace(name, value=value, samples=sum(share.samples for share in members))
