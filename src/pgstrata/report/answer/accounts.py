"""Where the time of a transaction went: a difference as sentences, a chart and tables."""

import math
from collections.abc import Callable, Iterator, Sequence

from pgstrata.compare.factors.axes import group_levels
from pgstrata.model.answer import ALL_CELLS, Answer
from pgstrata.model.attribution import Attribution, Contribution, CountedUse, LevelAccount
from pgstrata.model.metrics import METRICS
from pgstrata.report.blocks.model import Block, Column, Details, Figure, Paragraph, Section, Table, Tone, begin, end
from pgstrata.report.sentences.causes import (
    METHOD_NOTES,
    PART_NAMES,
    choose_decimals,
    choose_rows,
    choose_unit,
    half_of,
    name_among_rows,
    name_query,
    name_row,
    render_amount,
    render_half,
    render_signed,
    say_attribution,
    say_causes,
    say_left,
    say_samples,
)
from pgstrata.report.sentences.names import capitalise, count, name_factor

_LONGEST_HINT = 1000
_NARROWEST_NAME = 22
_FEWEST_FOLDED = 2
_TOTAL = "all"
"""What `name_part` calls the total."""
_MOST_COUNTED = 4


def account_blocks(answer: Answer, item: Attribution, chart: Figure | None = None) -> tuple[Block, ...]:
    """One difference: what is saved or added by which parts, of which statements; what was counted beside it."""
    size, unit = choose_unit(max(item.total.value, item.total.reference))
    texts = (capitalise(say_attribution(answer, item)), begin(say_causes(item)))
    blocks: list[Block] = [Paragraph(end(text)) for text in texts if text]
    blocks.append(chart or Paragraph("Only the largest differences are drawn.", Tone.HELP))
    blocks.append(_contributions(f"{unit} per transaction", [*item.parts, item.total], size))
    if len({row.query for row in item.rows if row.query}) > 1:
        blocks += _ranked(f"part and statement, {unit}", item.rows, (size, unit), name_among_rows)
    note = f"{say_samples(item)}; {METHOD_NOTES[item.method]}"
    known = "Intervals are 95 % intervals. Unresolved rows may be chance, given the number of rows."
    blocks.append(Paragraph(f"{note}. {known}", Tone.NOTE))
    if item.beside:
        said = Paragraph(_say_counted(item.beside))
        blocks.append(Details("Also counted", (said, _counted(item.beside))))
    if item.processes:
        others = _ranked(f"other processes, {unit}", item.processes, (size, unit))
        blocks.append(Details("What the server's other processes did", tuple(others)))
    return tuple(blocks)


def _ranked(
    title: str, rows: Sequence[Contribution], unit: tuple[float, str], name: Callable[[Contribution], str] = name_row
) -> Iterator[Block]:
    """The largest rows, and what is left."""
    shown, left = choose_rows(rows)
    yield _contributions(title, shown, unit[0], name)
    if left:
        yield Paragraph(end(say_left(left, *unit)), Tone.NOTE)


def _contributions(
    title: str, items: Sequence[Contribution], size: float, name: Callable[[Contribution], str] = name_row
) -> Table:
    halves = [half_of(item.interval) / size for item in items if half_of(item.interval) > 0]
    digits = choose_decimals(min(halves, default=1.0))
    cells = {
        "before": [f"{item.reference / size:.{digits}f}" for item in items],
        "after": [f"{item.value / size:.{digits}f}" for item in items],
        "change": [render_signed(item.difference / size, digits) for item in items],
        "±": [render_half(item, size, digits) for item in items],
        "samples": [f"{item.samples:,}" for item in items],
    }
    hints = tuple(name_query(item.query, _LONGEST_HINT) for item in items)
    return account_table(title, list(map(name, items)), cells, [item.resolved for item in items], hints=hints)


def account_table(
    title: str,
    names: Sequence[str],
    cells: dict[str, list[str]],
    resolved: Sequence[bool],
    *,
    hints: tuple[str, ...] = (),
    code: bool = False,
) -> Table:
    """Figures by heading, and whether each row is more than chance; what is not is pale on a page, and folded away.

    The last row is not folded if it is the total. Where nothing else is left, nothing is folded.
    """
    unresolved = frozenset(place for place, each in enumerate(resolved) if not each)
    folded = unresolved - {len(names) - 1} if names and names[-1] == _TOTAL else unresolved
    folded = frozenset() if len(folded) == len(names) or len(folded) < _FEWEST_FOLDED else folded
    return Table(
        names=Column(title=title, cells=tuple(names)),
        columns=(
            *(Column(title=heading, cells=tuple(texts)) for heading, texts in cells.items()),
            Column(title="state", cells=tuple("resolved" if each else "unresolved" for each in resolved), words=True),
        ),
        soft=unresolved,
        folded=folded,
        folded_title=f"{count(len(folded), 'unresolved row')}: chance may explain them",
        hints=hints,
        code=code,
        breaks=_NARROWEST_NAME,
    )


def _say_counted(items: Sequence[CountedUse]) -> str:
    """Which of the counters differ by more than chance, the largest change first."""
    clear = [item for item in items if _is_clear(item)]
    if not clear:
        return f"None of these {count(len(items), 'counter')} differs by more than chance explains."
    ranked = sorted(clear, key=lambda item: -abs(item.difference) / (abs(item.reference) or math.inf))
    shown = [_say_use(item) for item in ranked[:_MOST_COUNTED]]
    left = [f"{len(ranked) - _MOST_COUNTED} more"] if len(ranked) > _MOST_COUNTED else []
    return f"Different by more than chance explains: {'; '.join([*shown, *left])}."


def _say_use(item: CountedUse) -> str:
    """WAL 900 B instead of 760 B."""
    after, before = render_amount(item.value, item.metric), render_amount(item.reference, item.metric)
    return f"{_name_counter(item)} {after} instead of {before}"


def _is_clear(item: CountedUse) -> bool:
    return item.interval.low > 0 or item.interval.high < 0


def _name_counter(item: CountedUse) -> str:
    """Without the words that the head of the table says."""
    title = METRICS[item.metric].title.removesuffix(" per transaction")
    return title.replace(" during the run", " in a run")


def _counted(items: Sequence[CountedUse]) -> Table:
    cells = {
        "before": [render_amount(item.reference, item.metric) for item in items],
        "after": [render_amount(item.value, item.metric) for item in items],
        "change": [render_amount(item.difference, item.metric) for item in items],
        "±": [render_amount(half_of(item.interval), item.metric) for item in items],
    }
    return account_table("per transaction or run", [*map(_name_counter, items)], cells, [*map(_is_clear, items)])


def level_sections(answer: Answer, cell: str) -> Iterator[Section]:
    """Along each ordered factor the time per transaction of each level, part by part."""
    found = {item.environment: item for item in answer.accounts if item.cell == cell}
    experiment = answer.study.plan.experiment
    for axis in answer.axes:
        alone = axis.cell == ALL_CELLS and len(experiment.cells) == 1
        if axis.cell != cell and not alone:
            continue
        for group in group_levels(experiment, axis.factor, axis.levels):
            accounts = [found[name] for name in group if name in found]
            if len(accounts) > 1:
                yield _levels(name_factor(axis.factor), axis.levels, group, accounts)


def _levels(factor: str, levels: Sequence[str], group: Sequence[str], accounts: Sequence[LevelAccount]) -> Section:
    """A column for each level, a row for each part that is a hundredth of one of them at least, and the sum."""
    size, unit = choose_unit(max(item.account.seconds for item in accounts))
    level_of = dict(zip(group, levels, strict=True))
    keys = [(row.part, row.event) for row in accounts[0].account.rows]
    table = [[row.seconds for row in item.account.rows] for item in accounts]
    totals = [item.account.seconds for item in accounts]
    kept = [
        place
        for place in range(len(keys))
        if any(abs(rows[place]) >= total / 100 for rows, total in zip(table, totals, strict=True))
    ]
    names = [keys[place][1] or PART_NAMES[keys[place][0]] for place in kept]
    digits = choose_decimals(min(totals) / size / 500)
    columns = tuple(
        Column(
            title=level_of[item.environment],
            cells=(
                *(f"{rows[place] / size:.{digits}f}" for place in kept),
                f"{math.fsum(rows[place] for place in range(len(keys)) if place not in kept) / size:.{digits}f}",
                f"{item.account.seconds / size:.{digits}f}",
            ),
        )
        for item, rows in zip(accounts, table, strict=True)
    )
    head = f"Along {factor}, {unit} per transaction (means over {count(accounts[0].blocks, 'block')})"
    return Section(head, (Table(names=Column(title=factor, cells=(*names, "smaller ones", "all")), columns=columns),))
