"""Prices in the answer on a table of results: the prices, sentences, and a table of values."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from pgstrata.compare.one_look import ImportAnswer
from pgstrata.model.answer import ALL_CELLS
from pgstrata.model.price import ValueFinding, Worth
from pgstrata.report.blocks.layout import render_tables
from pgstrata.report.blocks.model import NO_RESULT, Block, Column, Listing, Paragraph, Section, Table, Tone
from pgstrata.report.blocks.text import wrap
from pgstrata.report.figures.frontier import PRICES_HELP, draw_frontier
from pgstrata.report.sentences.names import TOGETHER, capitalise, count, say_on
from pgstrata.report.sentences.verdicts import tell_change, tell_interval, verdict_label
from pgstrata.report.sentences.worth import WORDS, price_texts, say_value
from pgstrata.units import render_digits

_MOST_SAID: Final = 4
_MOST_ROWS: Final = 20
_MOST_CHARTS: Final = 4
_TITLE: Final = "What it costs"


def worth_parts(answer: ImportAnswer) -> Iterator[list[str]]:
    """Blocks of lines: prices, values in sentences, a table of values; nothing without prices."""
    worth = answer.worth
    if worth is None:
        return
    yield [_TITLE, *(line for text in _prices(answer, worth) for line in wrap(text, first="- ", rest="  "))]
    if not worth.findings:
        return
    yield [line for text in _values(answer, worth) for line in wrap(text)]
    names, columns = _table(worth, several=_several(answer))
    *others, last = render_tables(names, columns)
    yield from (*others, [*last, *_left_out(worth)])


def worth_sections(answer: ImportAnswer) -> Iterator[Section]:
    """The same for a page, with a chart of price and throughput for each place."""
    worth = answer.worth
    if worth is None:
        return
    blocks: list[Block] = [Listing(tuple(_prices(answer, worth)))]
    if worth.findings:
        blocks += [Paragraph(text) for text in _values(answer, worth)]
        names, columns = _table(worth, several=_several(answer))
        blocks.append(Table(names=names, columns=tuple(columns)))
        blocks += [Paragraph(text, Tone.NOTE) for text in _left_out(worth)]
    places = dict.fromkeys(cost.cells for cost in worth.costs)
    charts = []
    for place in list(places)[:_MOST_CHARTS]:
        costs = [cost for cost in worth.costs if cost.cells == place]
        if chart := draw_frontier([cost.environment for cost in costs], costs, judged=False):
            charts.append(replace(chart, title=_name_place(place)) if _several(answer) else chart)
    if charts:
        blocks += [Paragraph(PRICES_HELP, Tone.HELP), *charts]
    if len(places) > _MOST_CHARTS:
        blocks.append(Paragraph(f"{count(len(places) - _MOST_CHARTS, 'more cell')} are not drawn.", Tone.NOTE))
    yield Section(_TITLE, tuple(blocks))


def _left_out(worth: Worth) -> list[str]:
    left = len(worth.findings) - _MOST_ROWS
    return [f"({count(left, 'more value')}: --json has them all)"] if left > 0 else []


def _several(answer: ImportAnswer) -> bool:
    return len(answer.cells) > 1


def _prices(answer: ImportAnswer, worth: Worth) -> list[str]:
    return [f"{text}." for text in (*price_texts(answer.prices), *_unpriced(answer, worth))]


def _values(answer: ImportAnswer, worth: Worth) -> list[str]:
    base, told = answer.question.baseline, worth.findings[:_MOST_SAID]
    # the sentence ends with the environment if there is no effect, otherwise with the baseline
    before = [one.environment if one.effect is None else base for one in told]
    places = [say_on(_place(one), name) if _several(answer) else "" for one, name in zip(told, before, strict=True)]
    said = [
        say_value(one, one.environment, base, where, lacking="too few values to tell")
        for one, where in zip(told, places, strict=True)
    ]
    left = len(worth.findings) - _MOST_SAID
    rest = [f"the table has {count(left, 'more value')} for the money"] if left > 0 else []
    return [f"{capitalise(text)}." for text in (*said, *rest)]


def _unpriced(answer: ImportAnswer, worth: Worth) -> list[str]:
    if not worth.unpriced:
        return []
    nothing = answer.question.baseline in worth.unpriced
    more = "; without the price of the baseline nothing is compared" if nothing else ""
    return [f"No price is given for {', '.join(worth.unpriced)}{more}"]


def _place(finding: ValueFinding) -> str:
    return _name_place(finding.cells)


def _name_place(cells: tuple[str, ...]) -> str:
    return TOGETHER if cells == (ALL_CELLS,) else cells[0]


def _table(worth: Worth, *, several: bool) -> tuple[Column, list[Column]]:
    rows = worth.findings[:_MOST_ROWS]
    costs = {(cost.environment, cost.cells): render_digits(cost.of_a_million(cost.rate)) for cost in worth.costs}
    names = tuple(f"{one.environment}, {_place(one)}" if several else one.environment for one in rows)
    return Column(title="environment", cells=names), [*_costs(worth, costs, rows), *_figures(rows)]


def _costs(
    worth: Worth, costs: Mapping[tuple[str, tuple[str, ...]], str], rows: Sequence[ValueFinding]
) -> list[Column]:
    if not costs:
        return []
    title = f"{worth.costs[0].price.currency} per million tx"
    return [Column(title=title, cells=tuple(costs.get((one.environment, one.cells), NO_RESULT) for one in rows))]


def _figures(rows: Sequence[ValueFinding]) -> list[Column]:
    changes = (tell_change(one.effect) for one in rows)
    return [
        Column(title="for the money", cells=tuple(changes)),
        Column(title="interval, %", cells=tuple(tell_interval(one.interval) for one in rows)),
        Column(
            title="verdict",
            cells=tuple(_label(one) for one in rows),
            words=True,
            verdicts=tuple(one.verdict.value for one in rows),
        ),
    ]


def _label(finding: ValueFinding) -> str:
    """The usual label, except "too early": a table gets no further values."""
    return "too few values" if finding.verdict.value == "insufficient" else verdict_label(finding, WORDS)
