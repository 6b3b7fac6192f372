"""The document of a search along levels: a page with a chart, like that of a study."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pgstrata.model.answer import Comparison
from pgstrata.model.bisect import Bisection, BisectStep
from pgstrata.model.metrics import METRICS
from pgstrata.report.blocks.model import Block, Column, Document, Listing, Paragraph, Section, Table, Tone, begin, end
from pgstrata.report.commands.bisect import say_search
from pgstrata.report.figures.effects import NamedDifference, choose_domain, draw_differences
from pgstrata.report.figures.run_lines import break_label
from pgstrata.report.sentences.names import count, name_factor
from pgstrata.report.sentences.verdicts import shown_interval, tell_change, tell_interval, verdict_label

_COMPARED: Final = (
    "Each level that was measured, compared with the first one in a study of its own. Its verdict says whether it is "
    "like the first or like the last level. The grey band is the threshold of the first of these studies. Later ones "
    "look for half of the whole difference."
)
_UNSAID: Final = (
    "the search looks for one change; changes that cancel each other out between two measured levels are missed",
    "levels that were not measured are taken to be like their neighbours",
    "the answer is about this machine, this workload and this load, not about others",
)


def make_search_document(found: Bisection, version: str) -> Document:
    """The whole answer of a search, in the order in which it is read; `version` is that of pgstrata."""
    metric, factor = METRICS[found.experiment.metric].title, name_factor(found.factor)
    known = [step for step in (found.ends, *found.steps) if step.comparison is not None]
    blocks = sum(step.comparison.blocks for step in known if step.comparison is not None)
    return Document(
        name=f"Search in {found.folder}",
        title=f"Where along {factor} did {metric} change?",
        summary=(
            f"{count(len(found.levels), 'level')} from {found.levels[0]} to {found.levels[-1]}, "
            f"{len(known)} of them compared with the first, {count(blocks, 'block')}"
        ),
        answer=tuple(Paragraph(end(begin(text))) for text in say_search(found)),
        doubts=(),
        sections=(
            *_compared(found, sorted(known, key=lambda step: found.levels.index(step.level))),
            *_skipped(found),
            Section("What this does not say", (Listing(tuple(end(begin(text)) for text in _UNSAID)),)),
        ),
        colophon=f"Question: {found.experiment.question} · pgstrata {version}",
    )


def _compared(found: Bisection, steps: list[BisectStep]) -> Iterator[Section]:
    if not steps:
        return
    rows = [(step, step.comparison) for step in steps if step.comparison is not None]
    comparisons = [item for _, item in rows]
    named = [
        NamedDifference(name=break_label(_name(found, step)), comparison=item, label=verdict_label(item))
        for step, item in rows
    ]
    threshold = found.ends.threshold
    domain = choose_domain(comparisons, threshold)
    chart = draw_differences(named, baseline=found.levels[0], threshold=threshold, domain=domain)
    blocks: tuple[Block, ...] = (Paragraph(_COMPARED, Tone.HELP), chart, _table(found, rows))
    yield Section(f"What was compared, against {found.levels[0]}", blocks, brief=True)


def _name(found: Bisection, step: BisectStep) -> str:
    if not found.commits:
        return step.level
    return f"{step.level} {found.commits[found.levels.index(step.level)].subject}"


def _table(found: Bisection, rows: list[tuple[BisectStep, Comparison]]) -> Table:
    items = [item for _, item in rows]
    sides = {"first": f"like {found.levels[0]}", "last": f"like {found.levels[-1]}"}
    return Table(
        names=Column(title=name_factor(found.factor), cells=tuple(_name(found, step) for step, _ in rows)),
        columns=(
            Column(
                title="effect",
                cells=tuple(tell_change(item.effect) for item in items),
            ),
            Column(title="interval, %", cells=tuple(tell_interval(shown_interval(item)) for item in items)),
            Column(title="threshold", cells=tuple(f"{step.threshold * 100:.3g} %" for step, _ in rows)),
            Column(title="blocks", cells=tuple(str(item.blocks) for item in items)),
            Column(
                title="verdict",
                cells=tuple(map(verdict_label, items)),
                words=True,
                verdicts=tuple(item.verdict.value for item in items),
            ),
            Column(title="is", cells=tuple(sides.get(step.side, step.side) for step, _ in rows), words=True),
            Column(title="study", cells=tuple(step.study for step, _ in rows), words=True),
        ),
    )


def _skipped(found: Bisection) -> Iterator[Section]:
    if found.skipped:
        items = tuple(end(f"{_name(found, step)}: {step.reason}") for step in found.skipped)
        yield Section("What could not be measured", (Listing(items),), brief=True)
