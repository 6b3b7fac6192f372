"""An environment of a study as a window: each run is a cell of it, so that it is explained like a recorded server."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from pgstrata.diagnosis.query_text import hash_query, is_hash, normalise
from pgstrata.model.activity import NO_QUERIES, PREPARED, ProcessCount, SessionCount, SessionState
from pgstrata.model.archive import (
    CLIENT,
    COMMITS,
    HOST_RATES,
    PARALLEL,
    SERVER_RATES,
    ArchiveWindow,
    Blocking,
    SessionClass,
    Span,
    StatementUse,
)
from pgstrata.model.experiment import Cell
from pgstrata.model.query_plans import LivePlan, PlanUse, SeenPlan
from pgstrata.model.runs import RunRecord
from pgstrata.sources.runs import may_enter

_ACTIVE: Final = "active"
_NO_STATEMENT: Final = frozenset({SessionState.CLIENT, SessionState.CONNECTING})


@dataclass(frozen=True, slots=True, kw_only=True)
class RunWindow:
    """The window of an environment's runs, how many there are, and texts of its statements by key."""

    window: ArchiveWindow
    runs: int
    texts: Mapping[str, str]


def shared_runs(
    runs: Iterable[RunRecord], cell: str, environment: str, reference: str
) -> tuple[list[RunRecord], list[RunRecord]]:
    """The runs of both environments that may enter an estimate and were sampled, in the blocks that both have."""
    usable = [run for run in runs if run.cell == cell and may_enter(run) and _is_sampled(run)]
    ours, theirs = ({run.block: run for run in usable if run.environment == name} for name in (environment, reference))
    blocks = sorted(ours.keys() & theirs.keys())
    return [ours[block] for block in blocks], [theirs[block] for block in blocks]


def _is_sampled(run: RunRecord) -> bool:
    return bool(run.throughput()) and any(count.samples for count in run.sessions)


def make_run_window(runs: Sequence[RunRecord], cell: Cell, plans: Iterable[PlanUse]) -> RunWindow:
    """Runs of one environment in one cell, at least one, as a window.

    A look is one at all clients, so there are as many as samples by client. Times of the window are only its length.

    Args:
        runs: with samples.
        cell: that they measured.
        plans: of this environment and cell.
    """
    length = max(1, round(sum(run.measured_seconds for run in runs) / len(runs)))
    span = Span(begin=0, end=length * len(runs))
    counted = [run for run in runs if run.queries is not None and not run.queries.lost]
    window = ArchiveWindow(
        span=span,
        unit=1,
        cell=length,
        looks=tuple(_looks(run, cell.clients) for run in runs),
        sessions=_sessions(runs, cell.driver),
        rates=_rates(runs),
        blocked=_blocked(runs, cell.driver),
        statements=_statements(counted),
        counted=math.fsum(run.measured_seconds for run in counted) if counted else None,
        transactions=math.fsum(map(_transactions, counted)),
        plans=tuple(_plans(plans, span)),
    )
    return RunWindow(window=window, runs=len(runs), texts=dict(_texts(runs)))


def statement_key(text: str) -> str:
    """A statement's key: a hash of its normalised text, which may be one already; empty for none."""
    return text if is_hash(text) else hash_query(text)


def _looks(run: RunRecord, clients: int) -> int:
    return max(1, round(sum(count.samples for count in run.sessions) / clients))


def _sessions(runs: Sequence[RunRecord], driver: str) -> Mapping[SessionClass, tuple[int, ...]]:
    found: defaultdict[SessionClass, list[int]] = defaultdict(lambda: [0] * len(runs))
    for place, run in enumerate(runs):
        for count in run.sessions:
            found[_session(count, driver)][place] += count.samples
        for process in run.processes:
            found[_process(process)][place] += process.samples
    return {session: tuple(counts) for session, counts in found.items()}


def _session(count: SessionCount, driver: str) -> SessionClass:
    waits = count.state is SessionState.WAITING
    return SessionClass(
        kind=CLIENT,
        application=driver,
        state="idle" if count.state in _NO_STATEMENT else _ACTIVE,
        wait_type=count.wait_type if waits else "",
        event=count.event if waits else "",
        statement=statement_key(count.query),
    )


def _process(count: ProcessCount) -> SessionClass:
    waits = count.state is SessionState.WAITING
    return SessionClass(
        kind=count.kind,
        state=_ACTIVE if count.kind == PARALLEL else "",
        wait_type=count.wait_type if waits else "",
        event=count.event if waits else "",
        statement=statement_key(count.query),
    )


def _blocked(runs: Sequence[RunRecord], driver: str) -> Mapping[Blocking, int]:
    found: Counter[Blocking] = Counter()
    for run in runs:
        for count in run.sessions:
            if count.blocker:
                root = _root(count.blocker, driver)
                found[Blocking(waiting=_session(count, driver), root=root, pid=0, held=0)] += count.samples
    return dict(found)


def _root(blocker: str, driver: str) -> SessionClass:
    if blocker == PREPARED:
        return SessionClass(kind="", state=PREPARED)
    if blocker in NO_QUERIES:
        return SessionClass(kind=blocker, application=driver, state=_ACTIVE)
    return SessionClass(kind=CLIENT, application=driver, state=_ACTIVE, statement=statement_key(blocker))


def _rates(runs: Sequence[RunRecord]) -> Mapping[str, tuple[float, ...]]:
    """Means by run; throughput is that of the driver."""
    found = {COMMITS: tuple(run.throughput() or math.nan for run in runs)}
    for name in (*SERVER_RATES, *HOST_RATES):
        values = tuple(_mean(run, name) for run in runs)
        if name != COMMITS and any(map(math.isfinite, values)):
            found[name] = values
    return found


def _mean(run: RunRecord, name: str) -> float:
    series = next((each for each in run.series if each.metric == name and not each.subject), None)
    values = np.asarray(series.values if series is not None else (), dtype=np.float64)
    known = values[np.isfinite(values)]
    return float(known.mean()) if known.size else math.nan


def _transactions(run: RunRecord) -> float:
    return (run.throughput() or 0.0) * run.measured_seconds


def _statements(runs: Sequence[RunRecord]) -> Mapping[str, StatementUse]:
    found: dict[str, StatementUse] = {}
    for run in runs:
        number = _transactions(run)
        for query in run.queries.queries if run.queries is not None else ():
            use = StatementUse(
                calls=query.calls * number,
                seconds=query.seconds * number,
                rows=query.rows * number,
                blocks_hit=query.blocks_hit * number,
                blocks_read=query.blocks_read * number,
                wal_bytes=(query.wal_bytes or 0.0) * number,
            )
            key = statement_key(query.query)
            found[key] = found[key].plus(use) if key in found else use
    return found


def _plans(plans: Iterable[PlanUse], span: Span) -> Iterator[SeenPlan]:
    """The usual plan of each statement, the first one that comes."""
    known: set[str] = set()
    for use in plans:
        key = hash_query(normalise(use.plan.statement))
        if key not in known:
            known.add(key)
            shape = use.plan.shape
            plan = LivePlan(shape="\n".join(shape), outline=shape, problem=use.plan.error)
            yield SeenPlan(statement=key, first=span.begin, last=span.end, plan=plan)


def _texts(runs: Sequence[RunRecord]) -> Iterator[tuple[str, str]]:
    for run in runs:
        seen = (count.query for counts in (run.sessions, run.processes) for count in counts)
        blockers = (count.blocker for count in run.sessions)
        queries = (query.query for query in run.queries.queries) if run.queries is not None else ()
        for text in (*seen, *blockers, *queries):
            if text and text not in NO_QUERIES and not is_hash(text):
                yield statement_key(text), text
