"""Sentences on differences that grow or shrink along clients or scale."""

from typing import Final

from pgstrata.model.answer import Answer, LoadTrend, Verdict
from pgstrata.model.metrics import METRICS
from pgstrata.model.plan import Plan
from pgstrata.model.reasons import DATA_EXCEED
from pgstrata.report.sentences.names import count, name_environment, say_on, say_size
from pgstrata.report.sentences.verdicts import render_interval
from pgstrata.units import Direction, render_percent_change

_MOST_SAID: Final = 4
_BUFFERS: Final = "shared_buffers"


def trend_sentences(answer: Answer) -> tuple[str, ...]:
    """Trends that are decided and not negligible; they lead the answer, because a mean over all cells hides them."""
    plan = answer.study.plan
    return tuple(say_trend(each, plan) for each in answer.load_trends if each.changes)[:_MOST_SAID]


def say_trend(trend: LoadTrend, plan: Plan) -> str:
    """18 on select-only: the gain in throughput grows with clients, from +2 % with 1 to +12 % with 64 clients (...)."""
    experiment = plan.experiment
    metric = METRICS[trend.metric]
    sign = 1 if metric.direction is Direction.HIGHER else -1
    first, last = (sign * (ratio - 1) for ratio in (trend.first, trend.last))
    figures = f"{render_percent_change(trend.effect)} {render_interval(trend.interval)}".rstrip()
    along = f"from {_say_end(trend.first, trend, 0)} to {_say_end(trend.last, trend, -1)}"
    turn = _say_turn(first, last, metric.title, trend)
    name = name_environment(experiment.environment(trend.environment), experiment)
    name += say_on(_say_curve(trend, plan), name)
    return f"{name}: {turn}, {along} (change {figures}, {count(trend.blocks, 'block')}, exploratory)"


def _say_turn(first: float, last: float, title: str, trend: LoadTrend) -> str:
    """`first` and `last` are above zero where the environment is ahead of the baseline."""
    grows = trend.verdict is Verdict.BETTER
    if min(first, last) < 0 < max(first, last):
        return f"{'overtakes' if grows else 'falls behind'} the baseline in {title} with more {_unit(trend)}"
    ahead = first + last > 0
    what = "gain" if ahead else "loss"
    return f"the {what} in {title} {'grows' if grows == ahead else 'shrinks'} with {trend.axis}"


def _unit(trend: LoadTrend) -> str:
    return "clients" if trend.axis == "clients" else "data"


def _say_end(ratio: float, trend: LoadTrend, place: int) -> str:
    level = trend.levels[place]
    where = f"with {count(level, 'client')}" if trend.axis == "clients" else f"at scale {level}"
    return f"{render_percent_change(ratio)} {where}"


def _say_curve(trend: LoadTrend, plan: Plan) -> str:
    """select-only; with what is fixed along the axis where it differs between curves, and whether data fit."""
    experiment = plan.experiment
    cell = experiment.cell(trend.cells[0])
    parts = [cell.workload]
    if trend.axis == "clients":
        parts += [say_size(cell)] if len({say_size(each) for each in experiment.cells}) > 1 else []
        parts += _say_fit(plan, cell.workload, cell.scale) if cell.data is None else []
    elif len({each.clients for each in experiment.cells}) > 1:
        parts.append(f"with {count(cell.clients, 'client')}")
    label = {each.label for each in experiment.cells if each.workload == cell.workload}
    parts += [f"[{cell.identity}]"] if len(label) > 1 else []
    return " ".join(parts)


def _say_fit(plan: Plan, workload: str, scale: int) -> list[str]:
    """Whether data fit shared_buffers, where the plan knows of data of that workload that do not."""
    notes = [
        note.value
        for note in plan.notes
        if note.code == DATA_EXCEED and note.said == workload and note.how.startswith(_BUFFERS)
    ]
    if not notes:
        return []
    if scale < min(notes):
        return [f"while data fit {_BUFFERS}"]
    return [f"where data exceed {_BUFFERS}"] if len(notes) == 1 else []
