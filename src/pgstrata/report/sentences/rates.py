"""The rates that environments sustain within an objective, in figures."""

from collections.abc import Sequence
from statistics import median

from pgstrata.compare.sustained import find_sustained_rates
from pgstrata.model.answer import Answer, SustainedRate
from pgstrata.model.metrics import SUSTAINED_RATE
from pgstrata.report.sentences.names import name_environment, name_where, say_objective, say_on
from pgstrata.sources.runs import may_enter
from pgstrata.units import render_value

_MOST_CELLS = 4


def rate_sentences(answer: Answer) -> list[str]:
    """One for each cell with an objective, without a full stop; none for controls, or where cells are many."""
    experiment = answer.study.plan.experiment
    by_cell: dict[str, list[SustainedRate]] = {}
    for item in find_sustained_rates(answer.study):
        if item.runs and experiment.environment(item.environment).control is None:
            by_cell.setdefault(item.cell, []).append(item)
    return [_say(answer, items) for items in by_cell.values()] if len(by_cell) <= _MOST_CELLS else []


def _say(answer: Answer, items: Sequence[SustainedRate]) -> str:
    experiment = answer.study.plan.experiment
    rates = [f"{_figures(answer, one)} in {name_environment(experiment.environment(one.environment), experiment)}"
             for one in items]  # fmt: skip
    where = say_on(name_where(items[0].cell, experiment)) if len(experiment.cells) > 1 else ""
    what = "median of the runs, 95 % interval" if any(one.interval for one in items) else "median of the runs"
    return f"transactions per second {say_objective(items[0].objective)}{where} ({what}): {', '.join(rates)}"


def _figures(answer: Answer, item: SustainedRate) -> str:
    """597; 3,300 [1,662, 5,644]: as in the table."""
    runs = [run for run in answer.study.runs if (run.environment, run.cell) == (item.environment, item.cell)]
    text = _rate(median(rate for run in runs if may_enter(run) and (rate := run.value(SUSTAINED_RATE.name))))
    return text if item.interval is None else f"{text} [{_rate(item.interval.low)}, {_rate(item.interval.high)}]"


def _rate(value: float) -> str:
    return render_value(value, SUSTAINED_RATE.unit).removesuffix("/s")
