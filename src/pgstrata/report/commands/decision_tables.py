"""The tables of the answer on other tools' results: environments, or the cells of each; bounded."""

from collections.abc import Iterator, Sequence
from typing import Final

from pgstrata.compare.one_look import ImportAnswer
from pgstrata.model.answer import Comparison
from pgstrata.report.blocks.layout import render_tables
from pgstrata.report.blocks.model import NO_RESULT, Column
from pgstrata.report.blocks.text import wrap
from pgstrata.report.commands.decision_sentences import RANKS, is_whole, label_of
from pgstrata.report.sentences.names import count
from pgstrata.report.sentences.verdicts import shown_interval, tell_change, tell_interval

_MOST_ROWS: Final = 20
_MOST_TABLES: Final = 6


def decision_tables(answer: ImportAnswer) -> Iterator[list[str]]:
    """One table of environments; where there are several cells one of cells for each environment."""
    if len(answer.cells) <= 1:
        items = pick_comparisons(answer, answer.headlines)
        names = Column(title="environment", cells=tuple(item.environment for item in items))
        *others, last = render_tables(names, figure_columns(answer, items))
        yield from (*others, [*last, *_say_rest(len(answer.headlines) - len(items), "comparison")])
        return
    named = order_environments(answer)
    for environment in named[:_MOST_TABLES]:
        own = [item for item in (*answer.headlines, *answer.explored) if item.environment == environment]
        items = pick_comparisons(answer, own)
        names = Column(title="cell", cells=tuple("all cells" if is_whole(item) else item.cell for item in items))
        first, *others = render_tables(names, figure_columns(answer, items))
        tables = [[*wrap(f"{environment} against {answer.question.baseline}"), *first], *others]
        tables[-1] += _say_rest(len(own) - len(items), "cell")
        yield from tables
    if len(named) > _MOST_TABLES:
        yield _say_rest(len(named) - _MOST_TABLES, "environment")


def order_environments(answer: ImportAnswer) -> list[str]:
    """All but the baseline; where they are too many for tables, those that differ first."""
    names = list(answer.question.environments)
    if len(names) <= _MOST_TABLES:
        return names
    ranks = {name: len(RANKS) for name in names}
    for item in answer.headlines:
        ranks[item.environment] = min(ranks[item.environment], RANKS.index(item.verdict))
    return sorted(names, key=ranks.__getitem__)


def pick_comparisons(answer: ImportAnswer, items: Sequence[Comparison]) -> Sequence[Comparison]:
    """Of too many the headlines over all cells, the levels of steps, then what differs most; in their order."""
    if len(items) <= _MOST_ROWS:
        return items
    beside = {name for axis in answer.axes for step in axis.steps for name in (step.before, step.after)}
    single = len(answer.cells) <= 1

    def rank(item: Comparison) -> tuple[bool, bool, int]:
        return not is_whole(item) or single, item.environment not in beside, RANKS.index(item.verdict)

    chosen = set(map(id, sorted(items, key=rank)[:_MOST_ROWS]))
    return [item for item in items if id(item) in chosen]


def _say_rest(left: int, noun: str) -> list[str]:
    return [f"({count(left, f'more {noun}')}: --json has them all)"] if left > 0 else []


def figure_columns(answer: ImportAnswer, items: Sequence[Comparison]) -> list[Column]:
    """The baseline's value stands beside each environment's: blocks that are left out may differ between them."""
    number = (
        Column(title="blocks", cells=tuple(f"{item.blocks:,}" for item in items))
        if answer.paired
        else Column(title="values", cells=tuple(f"{item.values:,} : {item.baseline_values:,}" for item in items))
    )
    return [
        Column(title="baseline", cells=tuple(_render(item.baseline_value) for item in items)),
        Column(title=answer.question.metric, cells=tuple(_render(item.value) for item in items)),
        Column(
            title="effect",
            cells=tuple(tell_change(item.effect) for item in items),
        ),
        Column(title="interval, %", cells=tuple(tell_interval(shown_interval(item)) for item in items)),
        number,
        Column(title="verdict", cells=tuple(label_of(answer, item) for item in items), words=True),
    ]


def _render(value: float | None) -> str:
    """A median in the file's own unit, whatever that is."""
    if value is None:
        return NO_RESULT
    return f"{value:,.0f}" if 9999.5 <= value < 1e12 else f"{value:.4g}"  # noqa: PLR2004 - where exponents would begin
