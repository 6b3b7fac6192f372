"""Prices in the answer on a table of results: the prices, sentences, and a table of values."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pgstrata.compare.one_look import ImportAnswer
from pgstrata.model.answer import ALL_CELLS
from pgstrata.model.price import ValueFinding, Worth
from pgstrata.report.blocks.layout import render_tables
from pgstrata.report.blocks.model import Column
from pgstrata.report.blocks.text import wrap
from pgstrata.report.sentences.answer import capitalise
from pgstrata.report.sentences.names import TOGETHER, count
from pgstrata.report.sentences.verdicts import render_interval, verdict_label
from pgstrata.report.sentences.worth import WORDS, price_texts, say_value
from pgstrata.units import render_percent_change

_MOST_SAID: Final = 4
_MOST_ROWS: Final = 20


def worth_parts(answer: ImportAnswer) -> Iterator[list[str]]:
    """Blocks of lines: prices, values in sentences, a table of values; nothing without prices."""
    worth = answer.worth
    if worth is None:
        return
    texts = [*price_texts(answer.prices), *_unpriced(answer, worth)]
    yield ["What it costs", *(line for text in texts for line in wrap(f"{text}.", first="- ", rest="  "))]
    if not worth.findings:
        return
    base, several = answer.question.baseline, len(answer.cells) > 1
    told = worth.findings[:_MOST_SAID]
    said = [say_value(one, one.environment, base, f" on {_place(one)}" if several else "") for one in told]
    left = len(worth.findings) - _MOST_SAID
    rest = [f"the table has {count(left, 'more value')} for the money"] if left > 0 else []
    yield [line for text in (*said, *rest) for line in wrap(f"{capitalise(text)}.")]
    yield from _tables(worth, several=several)


def _unpriced(answer: ImportAnswer, worth: Worth) -> list[str]:
    if not worth.unpriced:
        return []
    nothing = answer.question.baseline in worth.unpriced
    more = "; without the price of the baseline nothing is compared" if nothing else ""
    return [f"No price is given for {', '.join(worth.unpriced)}{more}"]


def _place(finding: ValueFinding) -> str:
    return TOGETHER if finding.cells == (ALL_CELLS,) else finding.cells[0]


def _tables(worth: Worth, *, several: bool) -> Iterator[list[str]]:
    rows = worth.findings[:_MOST_ROWS]
    costs = {(cost.environment, cost.cells): f"{cost.of_a_million(cost.rate):.3g}" for cost in worth.costs}
    names = tuple(f"{one.environment}, {_place(one)}" if several else one.environment for one in rows)
    columns = [*_costs(worth, costs, rows), *_figures(rows)]
    *others, last = render_tables(Column(title="environment", cells=names), columns)
    left = len(worth.findings) - len(rows)
    yield from (*others, [*last, *([f"({count(left, 'more value')}: --json has them all)"] if left > 0 else [])])


def _costs(
    worth: Worth, costs: Mapping[tuple[str, tuple[str, ...]], str], rows: Sequence[ValueFinding]
) -> list[Column]:
    if not costs:
        return []
    title = f"{worth.costs[0].price.currency} per million tx"
    return [Column(title=title, cells=tuple(costs.get((one.environment, one.cells), "-") for one in rows))]


def _figures(rows: Sequence[ValueFinding]) -> list[Column]:
    changes = ("-" if one.effect is None else render_percent_change(one.effect) for one in rows)
    return [
        Column(title="for the money", cells=tuple(changes)),
        Column(title="interval, %", cells=tuple(render_interval(one.interval) or "-" for one in rows)),
        Column(title="verdict", cells=tuple(_label(one) for one in rows), words=True),
    ]


def _label(finding: ValueFinding) -> str:
    """The usual label, except "too early": a table gets no further values."""
    return "too few values" if finding.verdict.value == "insufficient" else verdict_label(finding, WORDS)
