"""Two environments of a study, explained like windows of an archive: what is said in other words there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from pgstrata.model.explanation import Explained, Explanation, Outcome, WindowFacts
from pgstrata.report.blocks.model import Block, Column, Details, Document, Fact, Section, Table
from pgstrata.report.json.documents import SCHEMA
from pgstrata.report.live.frame import archive_document
from pgstrata.report.live.words import render_change, say_outcome
from pgstrata.stats.batches import FEWEST_BATCHES
from pgstrata.units import render_count, render_duration, render_rate

PLANS_NOTE: Final = (
    "Plans are those that EXPLAIN showed before the runs. If a statement had several, the most frequent one is shown."
)


def study_head(
    found: Explained, answer: Iterable[str], doubts: Iterable[str], sections: Iterable[Block], version: str
) -> Document:
    """The document; sentences of answer and doubts have no full stops."""
    ours, theirs = found.explanation.window.label, found.explanation.comparison.label
    return archive_document(
        found.archive,
        f"Is {ours} slower than {theirs}, and why?",
        f"{found.cell}: {ours}, compared with {theirs}",
        answer=answer,
        doubts=doubts,
        sections=sections,
        version=version,
        kind="Study",
    )


def say_run_outcome(found: Explained) -> str:
    """Whether transactions were slower in an environment; clients make the demand themselves."""
    why = found.explanation
    name, throughput, time = why.window.label, why.throughput, why.time
    rates = f"{render_rate(throughput.value)} instead of {render_rate(throughput.reference)} per second"
    match why.outcome:
        case Outcome.MORE | Outcome.FEWER:
            moved, time_taken = ("higher", "less") if why.outcome is Outcome.MORE else ("lower", "more")
            return (
                f"In {name} throughput was {moved} ({rates}, {render_change(throughput)}), but it is not certain that "
                f"transactions took {time_taken} time in the server: {render_duration(time.value)} instead of "
                f"{render_duration(time.reference)}, {render_change(time)}. Measure more blocks; if that does not "
                "decide it, look at the client and the network"
            )
        case Outcome.UNKNOWN:
            runs = min(why.window.runs, why.comparison.runs)
            if runs >= FEWEST_BATCHES:
                return say_outcome(found)
            return (
                f"Cannot tell whether anything differs in {name}: both environments have "
                f"{render_count(runs, 'block')}, and an interval needs {FEWEST_BATCHES} (throughput {rates})"
            )
        case _:
            return say_outcome(found)


def run_doubts(why: Explanation) -> Iterator[str]:
    """What limits the answer, without full stops."""
    yield "load counts sessions in a statement; time in the client, on the network and in pauses is not part of it"
    if not why.calls:
        yield "one of the environments has no figures from pg_stat_statements, so calls and their time are not known"
    if not why.host:
        yield "there are no figures of the host for each second; runs in slices do not record them"


def runs_from(found: Explained) -> Iterator[Fact]:
    """The study, and what both environments have in it."""
    yield Fact(name="study", value=found.archive)
    yield Fact(name="cell", value=found.cell)
    for title, window in (("environment", found.explanation.window), ("compared with", found.explanation.comparison)):
        yield Fact(name=title, value=_say_runs(window))


def _say_runs(window: WindowFacts) -> str:
    return f"{window.label}, {render_count(window.runs, 'run')}, {render_count(window.looks, 'look')} at its sessions"


def name_sides(blocks: Iterable[Block], found: Explained) -> Iterator[Block]:
    """The same blocks with the names of both environments for `before` and `window`."""
    ours, theirs = found.explanation.window.label, found.explanation.comparison.label
    names = {
        "before": theirs, "window": ours, "before:": f"{theirs}:", "window:": f"{ours}:",
        "behind it, before": f"behind it, {theirs}", "behind it": f"behind it, {ours}",
        "What changed": "What differs",
    }  # fmt: skip
    return (_rename(block, names) for block in blocks)


def _rename(block: Block, names: Mapping[str, str]) -> Block:
    match block:
        case Section() | Details():
            inside = tuple(_rename(each, names) for each in block.blocks)
            return replace(block, title=names.get(block.title, block.title), blocks=inside)
        case Table():
            return replace(block, columns=tuple(_rename_column(column, names) for column in block.columns))
        case _:
            return block


def _rename_column(column: Column, names: Mapping[str, str]) -> Column:
    return replace(column, title=names.get(column.title, column.title))


def study_json(found: Explained, answer: Iterable[str]) -> Mapping[str, Any]:
    """What a document for programs begins with."""
    return {
        "schema": SCHEMA,
        "study": found.archive,
        "cell": found.cell,
        "answer": list(answer),
        "warnings": list(run_doubts(found.explanation)),
    }
