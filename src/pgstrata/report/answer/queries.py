"""More calls or slower calls: statements as their servers counted them, in blocks and fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pgstrata.compare.causes.queries import compare_queries
from pgstrata.model.answer import Answer
from pgstrata.model.experiment import ServerKind
from pgstrata.model.queries import QueriesCompared, QueryChange
from pgstrata.report.blocks.model import Block, Column, Listing, Paragraph, Table, Tone
from pgstrata.report.json.fields import pick_fields
from pgstrata.report.sentences.names import count

_MOST_ROWS: Final = 12
_QUERY_WIDTH: Final = 36
_MICROSECOND: Final = 1e-6
EXTENSION: Final = "pg_stat_statements"
_HOW: Final = (
    "Calls and latencies of single statements are not known: load pg_stat_statements in all environments, by "
    'settings.shared_preload_libraries = "pg_stat_statements" below [common]; it has its cost in each.'
)
_HOW_RUNNING: Final = (
    "Calls and latencies of single statements are not known: pg_stat_statements is not loaded in the running servers, "
    "or may not be read."
)
_HOW_LOADED: Final = (
    "Calls and latencies of single statements are not known: pg_stat_statements is loaded, but the servers did not let "
    "pgstrata create it in its database or read it, or no two runs of a block have its counts."
)
_FIELDS: Final = "query calls reference_calls latency reference_latency difference interval by_calls by_latency"
_OFF: Final = "Calls and latencies of single statements are not kept with `{} = false`."


def compared_queries(answer: Answer, environment: str, cell: str) -> QueriesCompared | None:
    """The statements of an environment beside the baseline's; None where one of both has no counts."""
    baseline = answer.study.plan.experiment.baseline
    return compare_queries(answer.study.runs, environment=environment, reference=baseline, cell=cell)


def query_blocks(answer: Answer, environment: str, cell: str) -> tuple[Block, ...]:
    """A table of statements, or why there is none."""
    found = compared_queries(answer, environment, cell)
    if found is None:
        return (Listing((_say_missing(answer),)),)
    lost = tuple(f"Runs are left out here: {text}." for text in found.lost)
    return (*(_table(found) if found.changes else ()), *([Listing(lost)] if lost else []))


def query_fields(answer: Answer) -> list[dict[str, Any]]:
    """For the JSON document: each environment and cell that has counts; seconds, and calls per transaction."""
    experiment = answer.study.plan.experiment
    found = (
        compared_queries(answer, environment.name, cell.identity)
        for environment in experiment.environments
        if environment.name != experiment.baseline
        for cell in experiment.cells
    )
    return [
        {
            **pick_fields(item, "environment reference cell blocks"),
            "queries": [pick_fields(change, _FIELDS) for change in item.changes],
            "lost": list(item.lost),
        }
        for item in found
        if item is not None
    ]


def _say_missing(answer: Answer) -> str:
    experiment = answer.study.plan.experiment
    off = [name for name in ("diagnosis", "query_text") if not getattr(experiment, name)]
    if off:
        return _OFF.format(off[0])
    own = [each for each in experiment.environments if each.server.kind is not ServerKind.DSN]
    if not own:
        return _HOW_RUNNING
    if not all(each.loads(EXTENSION) for each in own):
        return _HOW
    return _HOW_LOADED if len(own) == len(experiment.environments) else _HOW_RUNNING


def _table(found: QueriesCompared) -> Iterator[Block]:
    shown, left = found.changes[:_MOST_ROWS], found.changes[_MOST_ROWS:]
    columns = (
        Column(title="calls", cells=tuple(f"{change.reference_calls:.2f}" for change in shown)),
        Column(title="after", cells=tuple(f"{change.calls:.2f}" for change in shown)),
        Column(title="µs a call", cells=tuple(_micro(change.reference_latency) for change in shown)),
        Column(title="after", cells=tuple(_micro(change.latency) for change in shown)),
        Column(title="by calls", cells=tuple(_change(change.by_calls) for change in shown)),
        Column(title="by latency", cells=tuple(_change(change.by_latency) for change in shown)),
        Column(title="±", cells=tuple(_half(change) for change in shown)),
    )
    names = Column(title="µs per transaction", cells=tuple(_name(change.query) for change in shown))
    yield Table(names=names, columns=columns)
    if left:
        rest = sum(change.difference for change in left)
        yield Paragraph(f"And {count(len(left), 'statement')} more, {_change(rest)} µs together.", Tone.NOTE)
    yield Paragraph(
        f"As pg_stat_statements counted them, means over {count(found.blocks, 'block')}; the ± is that of both changes "
        "together, at 95 %.",
        Tone.NOTE,
    )


def _name(query: str) -> str:
    line = "".join(mark if mark.isprintable() else "?" for mark in query)
    return line if len(line) <= _QUERY_WIDTH else f"{line[: _QUERY_WIDTH - 3].rstrip()}..."


def _micro(seconds: float) -> str:
    return f"{seconds / _MICROSECOND:,.1f}"


def _change(seconds: float) -> str:
    return f"{seconds / _MICROSECOND:+,.1f}"


def _half(change: QueryChange) -> str:
    return "" if change.interval is None else _micro((change.interval.high - change.interval.low) / 2)
