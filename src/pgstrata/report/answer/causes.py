"""Why environments differ: the sections of a report, and the document that answers nothing else."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pgstrata.compare.environments.unobserved import UNSEEN
from pgstrata.compare.factors.axes import group_levels
from pgstrata.model.answer import Answer, OrderedAxis
from pgstrata.model.attribution import Attribution, LevelAccount
from pgstrata.model.experiment import Cell
from pgstrata.report.answer.accounts import account_blocks, account_table, level_sections
from pgstrata.report.answer.queries import differing_plans, plan_blocks, plan_text_blocks, query_blocks, say_plan
from pgstrata.report.blocks.model import (
    Block,
    Details,
    Document,
    Figure,
    Inline,
    Listing,
    Marked,
    Paragraph,
    Section,
    Tone,
    begin,
    end,
)
from pgstrata.report.figures.flames import FlamePart, make_flames, signed_duration
from pgstrata.report.figures.waterfalls import Stack, draw_stacks, draw_waterfall, stack_levels
from pgstrata.report.sentences.answer import answer_sentences
from pgstrata.report.sentences.causes import say_levels, say_missing
from pgstrata.report.sentences.factors import primary_axes
from pgstrata.report.sentences.findings import say_doubt_of
from pgstrata.report.sentences.names import (
    capitalise,
    count,
    name_both,
    name_cell,
    name_difference,
    name_environment,
    name_factor,
)
from pgstrata.units import render_duration

_MOST_DRAWN: Final = 12
_MOST_OPEN: Final = 4
_MOST_TOLD: Final = 60
_MOST_LEVELS: Final = 6
_MOST_MISSING: Final = 20
_MOST_PLANS: Final = 60
_SHOW_WHY: Final = Marked("pgstrata show --why", "code")
_WHY: Final = (
    "Where the time of a transaction went: clients \u00d7 measured seconds \u00f7 transactions, split into the client "
    "and the network, the CPU and its run queue, and what sessions waited for. The bars lead from the environment "
    "named after 'against' (before) to the one named first (after). Whiskers are 95 % intervals. Pale bars are "
    "unresolved: among so many rows, such changes may be chance."
)
_FLAMES: Final[Inline] = (
    (
        "Stacks of the server's processes, sampled by perf. The width of a frame is the CPU time per transaction in "
        "the environment, of it and of what it called; above it stands what it called. "
    ),
    Marked("Orange", "more"),
    " is more than in the baseline, ",
    Marked("blue", "less"),
    (
        " less, the stronger the more; grey differs by no more than chance may make: three standard errors with many "
        "blocks, more with few. What all stacks of a kind of process have in common is left out, as is what has less "
        "than 0.2 % of the whole. The table has functions without what they called, also those that are gone."
    ),
)
_PLANS: Final = (
    "What EXPLAIN says of the statements before the runs, where it differs from the baseline in more than costs and "
    "estimates."
)


def causes_section(answer: Answer) -> Section | None:
    """Every difference that was split, the largest first; None where nobody asked."""
    ranked = sorted(answer.attributions, key=_relative_size, reverse=True)
    left = len(ranked) - _MOST_TOLD
    blocks: list[Block] = [_account(answer, item, place) for place, item in enumerate(ranked[:_MOST_TOLD])]
    if left > 0:
        text = (f"{left} smaller differences are left out here: ", _SHOW_WHY, " has them all.")
        blocks.append(Paragraph(text, Tone.NOTE))
    blocks += _draw_levels(answer)
    missing = [end(capitalise(say_missing(answer, item))) for item in answer.unattributed]
    if missing:
        more = [f"and {len(missing) - _MOST_MISSING} more."] if len(missing) > _MOST_MISSING else []
        items = Listing((*missing[:_MOST_MISSING], *more))
        blocks.append(Details("Differences that could not be split", (items,)))
    return Section("Why", (Paragraph(_WHY, Tone.HELP), *blocks)) if blocks else None


def _relative_size(item: Attribution) -> float:
    return abs(item.total.difference) / item.total.reference if item.total.reference > 0 else 0.0


def _account(answer: Answer, item: Attribution, place: int) -> Details:
    experiment = answer.study.plan.experiment
    name, reference = name_both(item.environment, item.reference, experiment)
    chart = draw_waterfall(item, (reference, name), "") if place < _MOST_DRAWN else None
    title = name_difference(item.environment, item.reference, item.cell, experiment)
    return Details(title, account_blocks(answer, item, chart), open=place < _MOST_OPEN)


def flames_section(answer: Answer) -> Section | None:
    """Flame graphs of the largest differences in CPU time; None where no stacks were sampled."""
    sheet = make_flames(answer)
    blocks: list[Block] = [Paragraph(_FLAMES, Tone.HELP)] if sheet.parts else []
    blocks += [_flame(part, is_first=part is sheet.parts[0]) for part in sheet.parts]
    if sheet.left:
        text = f"{sheet.left} more comparisons, with smaller differences in CPU time, are not drawn."
        blocks.append(Paragraph(text, Tone.HELP))
    blocks += [Paragraph(end(note), Tone.NOTE) for note in sheet.notes]
    return Section("Where the CPU time changed", tuple(blocks)) if blocks else None


def _flame(part: FlamePart, *, is_first: bool) -> Details:
    changes = [change for _, change in part.functions]
    cells = {
        "before": [render_duration(change.reference) for change in changes],
        "after": [render_duration(change.value) for change in changes],
        "change": [signed_duration(change.difference) for change in changes],
        "standard error": [render_duration(change.error) for change in changes],
    }
    names, resolved = [name for name, _ in part.functions], [change.resolved for change in changes]
    table = account_table("own CPU time per transaction", names, cells, resolved, code=True)
    return Details(part.title, (Paragraph(end(part.said)), part.figure, table), open=is_first)


def plans_section(answer: Answer) -> Section | None:
    """The plans of all environments and cells that differ from the baseline's; None without any."""
    found = differing_plans(answer)
    if not found:
        return None
    experiment = answer.study.plan.experiment
    blocks: list[Block] = []
    for item in found[:_MOST_PLANS]:
        after, before = name_both(item.environment, item.reference, experiment)
        title = name_difference(item.environment, item.reference, item.cell, experiment)
        texts = plan_text_blocks(item, before, after)
        blocks.append(Details(title, (Paragraph(end(begin(say_plan(item)))), *texts)))
    if (left := len(found) - _MOST_PLANS) > 0:
        text = (f"{left} more plans that differ are left out here: ", _SHOW_WHY, " has them all.")
        blocks.append(Paragraph(text, Tone.NOTE))
    return Section("Plans", (Paragraph(_PLANS, Tone.HELP), *blocks))


def _draw_levels(answer: Answer) -> list[Block]:
    """Along each ordered factor the stacked time per transaction, cell by cell, all else being equal, and in words."""
    experiment = answer.study.plan.experiment
    factors: dict[str, OrderedAxis] = {}
    for axis in primary_axes(answer):
        factors.setdefault(axis.factor, axis)
    blocks: list[Block] = []
    drawn = 0
    for axis in factors.values():
        for cell in experiment.cells:
            found = {item.environment: item for item in answer.accounts if item.cell == cell.identity}
            for group in group_levels(experiment, axis.factor, axis.levels):
                named = {level: found[name] for level, name in zip(axis.levels, group, strict=True) if name in found}
                if len(named) > 1 and drawn < _MOST_LEVELS:
                    drawn += 1
                    figure = _draw_group(answer, axis, name_cell(cell, experiment), group, named)
                    blocks += [figure, Paragraph(say_levels(named))]
    return blocks


def _draw_group(
    answer: Answer, axis: OrderedAxis, cell: str, group: Sequence[str], named: Mapping[str, LevelAccount]
) -> Figure:
    experiment = answer.study.plan.experiment
    times = stack_levels([{(row.part, row.event): row.seconds for row in item.account.rows} for item in named.values()])
    stacks = [Stack(name=level, times=found) for level, found in zip(named, times, strict=True)]
    rest = {
        f"{name_factor(level.factor)} = {level.value}"
        for level in experiment.environment(group[0]).levels
        if level.factor != axis.factor
    }
    beside = f", {', '.join(sorted(rest))}" if rest else ""
    blocks = count(max(item.blocks for item in named.values()), "block")
    return draw_stacks(stacks, f"Along {name_factor(axis.factor)}: {cell}{beside} (means over {blocks})")


def make_why_document(answer: Answer) -> Document:
    """The answer in a few words, then by cell why: sentences, tables, statements, levels."""
    study = answer.study
    unseen = tuple(end(say_doubt_of(doubt, study.plan.experiment)) for doubt in answer.warnings if doubt.code in UNSEEN)
    cells = (
        Section(f"Why: {name_cell(cell, study.plan.experiment)}", tuple(_why_cell(answer, cell)))
        for cell in study.plan.experiment.cells
    )
    return Document(
        name=f"Study {study.name}",
        title="",
        summary="",
        doubts=(),
        colophon="",
        answer=tuple(Paragraph(end(each.text)) for each in answer_sentences(answer) if not each.minor),
        sections=(*([Listing(unseen)] if unseen else []), *cells),
    )


def _why_cell(answer: Answer, cell: Cell) -> Iterator[Block]:
    experiment = answer.study.plan.experiment
    for item in answer.attributions:
        if item.cell == cell.identity:
            yield Section("", account_blocks(answer, item))
    missing = [item for item in answer.unattributed if item.cell == cell.identity]
    if missing:
        yield Listing(tuple(end(say_missing(answer, item)) for item in missing))
    for environment in experiment.environments:
        if environment.name != experiment.baseline:
            blocks = (
                *query_blocks(answer, environment.name, cell.identity),
                *plan_blocks(answer, environment.name, cell.identity),
            )
            if blocks:
                yield Section(f"Statements of {name_environment(environment, experiment)}:", blocks)
    yield from level_sections(answer, cell.identity)
