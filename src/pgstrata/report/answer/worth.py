"""The section on prices: the cost of a million transactions, value for money, and price against throughput."""

from __future__ import annotations

from collections.abc import Sequence

from pgstrata.model.answer import Answer
from pgstrata.model.price import Cost, ValueFinding
from pgstrata.report.blocks.model import NO_RESULT, Block, Column, Listing, OnPage, Paragraph, Section, Table, Tone, end
from pgstrata.report.figures.frontier import FRONTIER_HELP, draw_frontier
from pgstrata.report.sentences.names import name_environment
from pgstrata.report.sentences.verdicts import render_interval, verdict_label
from pgstrata.report.sentences.worth import WORDS, name_cells, price_notes, say_cost
from pgstrata.units import Unit, render_percent_change, render_value


def worth_section(answer: Answer) -> Section | None:
    """Costs and values, cell by cell and at each peak; None where nothing has a price."""
    worth = answer.worth
    if worth is None or not worth.costs:
        return None
    places = tuple(dict.fromkeys(cost.cells for cost in worth.costs))
    parts = tuple(
        _part(answer, [cost for cost in worth.costs if cost.cells == cells], [
            finding for finding in worth.findings if finding.cells == cells
        ])
        for cells in places
    )  # fmt: skip
    notes = Listing(tuple(map(end, price_notes(answer))))
    return Section("What it costs", (*parts, notes), brief=True)


def _part(answer: Answer, costs: Sequence[Cost], findings: Sequence[ValueFinding]) -> Section:
    experiment = answer.study.plan.experiment
    names = [name_environment(experiment.environment(cost.environment), experiment) for cost in costs]
    chart = draw_frontier(names, costs)
    drawn: tuple[Block, ...] = (Paragraph(FRONTIER_HELP, Tone.HELP), chart) if chart is not None else ()
    title = name_cells(costs[0].cells, experiment)
    return Section(title, (OnPage(lambda: drawn), _table(answer, costs, findings)), brief=True)


def _table(answer: Answer, costs: Sequence[Cost], findings: Sequence[ValueFinding]) -> Table:
    experiment = answer.study.plan.experiment
    found = {finding.environment: finding for finding in findings}
    values = [found.get(cost.environment) for cost in costs]
    names = tuple(name_environment(experiment.environment(cost.environment), experiment) for cost in costs)
    dominated = (
        name_environment(experiment.environment(cost.dominated_by), experiment) if cost.dominated_by else NO_RESULT
        for cost in costs
    )
    currency = costs[0].price.currency
    return Table(
        names=Column(title="environment", cells=names),
        columns=(
            Column(title=f"{currency} per hour", cells=tuple(f"{cost.price.amount:g}" for cost in costs)),
            Column(title="tx/s", cells=tuple(render_value(cost.rate, Unit.COUNT) for cost in costs)),
            Column(title=f"{currency} per million tx", cells=tuple(map(say_cost, costs))),
            Column(title="for the money", cells=tuple(map(_change, values))),
            Column(
                title="verdict",
                cells=tuple("baseline" if one is None else verdict_label(one, WORDS) for one in values),
                verdicts=tuple("" if one is None else one.verdict.value for one in values),
                words=True,
            ),
            Column(title="beaten by", cells=tuple(dominated), words=True),
        ),
    )


def _change(finding: ValueFinding | None) -> str:
    if finding is None or finding.effect is None:
        return NO_RESULT
    return f"{render_percent_change(finding.effect)} {render_interval(finding.interval)}".strip()
