"""The section of charts along each axis of a study: factors, clients and scale, with tables where lines are many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from pgstrata.compare.factors.axes import FEWEST_LEVELS, find_groups
from pgstrata.model.answer import Answer
from pgstrata.model.experiment import Cell
from pgstrata.model.metrics import METRICS
from pgstrata.model.plan import Plan
from pgstrata.model.reasons import DATA_EXCEED
from pgstrata.report.answer.matrix import groups_matrix, values_matrix
from pgstrata.report.blocks.model import Block, Details, Figure, Paragraph, Section, Tone, begin, end
from pgstrata.report.figures.looks import ALL_NAMED
from pgstrata.report.figures.multiples import draw_multiples
from pgstrata.report.figures.plot_rows import Bounds
from pgstrata.report.figures.projected import draw_projection
from pgstrata.report.projections.choice import KindChoice, choose_projections
from pgstrata.report.projections.design import find_projections, short_names
from pgstrata.report.projections.estimates import Figures, gather_figures, has_figures
from pgstrata.report.projections.model import CLIENTS, ENVIRONMENT, PAIR, SCALE
from pgstrata.report.sentences.load import ladder_sentences
from pgstrata.report.sentences.names import count
from pgstrata.report.sentences.projections import name_kind, say_choice
from pgstrata.report.sentences.reasons import say_outgrown
from pgstrata.report.sentences.verdicts import render_threshold
from pgstrata.units import render_bytes

_MOST_OPEN: Final = 4
_FEW_CURVES: Final = 8
_BUFFERS: Final = "shared_buffers"


def along_axes(answer: Answer, along: Sequence[str] = ()) -> tuple[Section, ...]:
    """The primary metric, median latency (else throughput) and differences along factors, clients and scale.

    Nothing without an axis of three levels. `along` names axes all of whose charts are drawn, and no others; these need
    two levels.
    """
    figures = gather_figures(answer)
    fewest = PAIR if along else FEWEST_LEVELS
    found = [each for each in find_projections(answer.study.plan.experiment, fewest) if has_figures(each, figures)]
    if not found:
        return ()
    kinds = choose_projections(found, along=along)
    bounds = make_bounds(answer)
    notes = [end(begin(said)) for said in (say_choice(kinds), *ladder_sentences(answer.study)) if said]
    blocks: list[Block] = [Paragraph(_explain(answer, figures, kinds), Tone.HELP)]
    blocks += [Paragraph(said, Tone.NOTE) for said in notes]
    if (overview := groups_matrix(answer)) is not None:
        blocks.append(overview)
    blocks += [_section(answer, kind, figures, bounds) for kind in kinds if kind.drawn]
    return (Section("Along each axis", tuple(blocks)),)


def make_bounds(answer: Answer) -> Bounds:
    """What all charts share."""
    plan = answer.study.plan
    experiment = plan.experiment
    return Bounds(
        baseline=experiment.baseline,
        baseline_title=short_names(experiment)[experiment.baseline],
        threshold=experiment.threshold,
        exceeded={cell.identity: _exceeded(plan, cell) for cell in experiment.cells},
        crossed=frozenset(factor for factor in experiment.factors if len(find_groups(experiment, factor)) > 1),
    )


def _exceeded(plan: Plan, cell: Cell) -> tuple[str, ...]:
    """What its data are larger than: shared_buffers, memory; with its size where environments have several."""
    notes = [note for note in plan.notes if note.code == DATA_EXCEED and note.said == cell.workload]
    kinds = [_BUFFERS if note.how.startswith(_BUFFERS) else "memory" for note in notes]
    return tuple(
        f"{kind} of {render_bytes(note.of)}" if kinds.count(kind) > 1 else kind
        for kind, note in zip(kinds, notes, strict=True)
        if cell.data is None and cell.scale >= note.value
    )


def _section(answer: Answer, kind: KindChoice, figures: Figures, bounds: Bounds) -> Section:
    """A few charts side by side, and the others folded below them."""
    drawn = [draw_projection(each, figures, bounds) for each in kind.drawn]
    first, rest = drawn[:_MOST_OPEN], drawn[_MOST_OPEN:]
    folded = (Details(count(len(rest), "more chart"), (_side_by_side(rest),)),) if rest else ()
    return Section(
        begin(name_kind(kind.axis, kind.series)), (_side_by_side(first), *folded, *_values(answer, kind, figures))
    )


def _values(answer: Answer, kind: KindChoice, figures: Figures) -> Iterator[Block]:
    """Of many environments along the load: each by itself where lines are grey, and all values as tables."""
    crowded = [each for each in kind.drawn if len(each.curves) > _FEW_CURVES]
    if kind.kind not in {(CLIENTS, ENVIRONMENT), (SCALE, ENVIRONMENT)} or not crowded:
        return
    grey = [each for each in crowded if len(each.curves) > ALL_NAMED]
    if grey:
        small = [draw_multiples(each, figures) for each in grey[:_MOST_OPEN]]
        yield Details("Each environment by itself", (_side_by_side(small),))
    if kind.axis == SCALE and len({cell.clients for cell in answer.study.plan.experiment.cells}) > 1:
        return
    threshold = answer.study.plan.experiment.threshold
    tables = [values_matrix(each, figures, threshold) for each in crowded]
    title = f"Values and differences: environments by {kind.axis} ({count(len(tables), 'table')})"
    yield Details(title, tuple(tables), open=bool(grey))


def _side_by_side(drawn: Sequence[Figure]) -> Section:
    return Section("", tuple(Section("", (each,)) for each in drawn), parallel=True)


def _explain(answer: Answer, figures: Figures, kinds: Sequence[KindChoice]) -> str:
    return " ".join(_explanations(answer, figures, kinds))


def _explanations(answer: Answer, figures: Figures, kinds: Sequence[KindChoice]) -> Iterator[str]:
    experiment = answer.study.plan.experiment
    metric, beside = (METRICS[name].title for name in (figures.metric, figures.beside_metric))
    yield (
        f"{begin(metric)}, {beside} below it, then the difference from the baseline. Points are medians of the runs; "
        f"whiskers are their 95 % intervals, of fewer than six runs from the smallest to the largest."
    )
    yield (
        f"Differences have the intervals of the comparisons, as whiskers or bands; the grey band is the threshold of "
        f"{render_threshold(experiment.threshold)}. Clients and scale are on logarithmic axes."
    )
    if any(each.gapped for kind in kinds for each in kind.drawn):
        yield "Dotted lines join two levels; between them nothing was measured."
    if any(kind.axis == SCALE for kind in kinds) and (said := say_outgrown(answer.study.plan)):
        yield f"Dashed lines: {'; '.join(said)}."
