"""Why environments differ: where the time of a transaction went, in sentences and tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from pgstrata.compare.unobserved import UNSEEN
from pgstrata.model.activity import ACTIVITY_HERTZ
from pgstrata.model.answer import ALL_CELLS, Answer, Verdict
from pgstrata.model.attribution import (
    Attribution,
    Contribution,
    CountedUse,
    LevelAccount,
    Method,
    Part,
    SampleSource,
    Unattributed,
)
from pgstrata.model.experiment import Cell, Environment
from pgstrata.model.metrics import METRICS, TPS
from pgstrata.report.columns import WIDTH, Column, render_tables, wrap_text
from pgstrata.report.contributions import (
    PART_NAMES,
    choose_decimals,
    choose_unit,
    half_of,
    name_part,
    name_row,
    render_change,
    render_half,
    render_signed,
)
from pgstrata.report.names import count, name_cell, name_environment, name_factor, name_where
from pgstrata.report.ordered import axis_groups
from pgstrata.report.queries import query_lines
from pgstrata.report.query_plans import plan_lines
from pgstrata.report.words import answer_sentences
from pgstrata.units import Unit, render_bytes, render_value

METHOD_NOTES: Final = {
    Method.COUNTED: "waits as sampled, CPU and run queue as the kernel counts them, without what lies in waits; client "
    "and network is what is left, so that nothing remains unexplained",
    Method.ASLEEP: "waits as sampled, and so the rest, in which sessions slept without an event that the server names; "
    "CPU and run queue as the kernel counts them, without what lies in these; client and network is what is left",
    Method.UNNAMED: "waits as sampled, CPU and run queue as the kernel counts them; the rest is time in statements "
    "that was neither on a CPU nor in an event that the server names",
    Method.SAMPLED: "all sampled; the kernel did not count CPU and run queue here, so that they are one",
}
_MOST_ROWS: Final = 12
_MOST_PROCESSES: Final = 8
_MOST_SAID: Final = 5
_NARROWEST_NAME: Final = 22
_OF_NO_STATEMENT: Final = frozenset({Part.CLIENT, Part.CONNECT})


# ------------------------------------------------------------------------------------------------ sentences


def say_attribution(answer: Answer, item: Attribution) -> str:
    """One sentence: what is saved or added per transaction, and by which parts."""
    experiment = answer.study.plan.experiment
    name = name_environment(experiment.environment(item.environment), experiment)
    size, unit = choose_unit(max(item.total.value, item.total.reference))
    before, after = item.total.reference / size, item.total.value / size
    digits = choose_decimals(half_of(item.total.interval) / size)
    blocks = count(item.blocks, "block")
    if not item.total.resolved:
        return (
            f"{name}: no difference in the time of a transaction is certain, {render_change(item.total, size)} {unit} "
            f"of {before:.{digits}f} ({blocks})"
        )
    verb = "saves" if item.total.difference < 0 else "costs"
    amount = f"{abs(item.total.difference) / size:.{digits}f} ± {half_of(item.total.interval) / size:.{digits}f} {unit}"
    head = f"{name} {verb} {amount} per transaction ({before:.{digits}f} -> {after:.{digits}f}, {blocks})"
    return f"{head}: {_say_parts(item, size)}"


def _say_parts(item: Attribution, size: float) -> str:
    """The parts that are certain, then those that are not, then the sum of what is left."""
    shown = sorted(item.parts, key=lambda part: (not part.resolved, -abs(part.difference)))[:_MOST_SAID]
    sure = [f"{render_change(part, size)} {name_part(part)}" for part in shown if part.resolved]
    open_ = [f"{render_change(part, size)} {name_part(part)}" for part in shown if not part.resolved]
    left = item.total.difference - sum(part.difference for part in shown)
    texts = [", ".join(sure)] if sure else []
    if open_:
        texts.append(f"unresolved {', '.join(open_)}")
    if len(shown) < len(item.parts):
        texts.append(f"{render_signed(left / size, 1)} in {count(len(item.parts) - len(shown), 'smaller part')}")
    return "; ".join(texts)


def say_causes(item: Attribution) -> str:
    """What is certain to have a part in it and in which statement, the first cause first; empty without any.

    Where no statements are told apart the figures are those of the parts, which stand there already.
    """
    if not item.causes:
        return ""
    if len({row.query for row in item.rows if row.part not in _OF_NO_STATEMENT}) <= 1:
        return f"first cause: {name_row(item.causes[0])}"
    size, unit = choose_unit(max(item.total.value, item.total.reference))
    texts = [f"{name_row(cause)} ({render_change(cause, size)} {unit})" for cause in item.causes[:_MOST_SAID]]
    return f"first cause: {texts[0]}" + (f"; then {'; '.join(texts[1:])}" if texts[1:] else "")


def cause_sentences(answer: Answer) -> list[str]:
    """The first cause of each difference in throughput that a verdict has found, for few of them; nothing else.

    Controls have none, nor has a difference that goes the other way in the account.
    """
    experiment = answer.study.plan.experiment
    found = {(item.environment, item.cell): item for item in answer.attributions if item.causes}
    texts = []
    for comparison in answer.comparisons:
        item = found.get((comparison.environment, comparison.cell))
        signs = {Verdict.BETTER: -1.0, Verdict.WORSE: 1.0}
        sign = signs.get(comparison.verdict) if comparison.metric == TPS.name and not comparison.control else None
        if item is not None and sign is not None and item.total.difference * sign > 0:
            name = name_environment(experiment.environment(item.environment), experiment)
            size, unit = choose_unit(max(item.total.value, item.total.reference))
            where = f" on {name_where(item.cell, experiment)}" if len(experiment.cells) > 1 else ""
            texts.append(
                f"{name}{where}: the first cause is {name_row(item.causes[0])}, "
                f"{render_change(item.causes[0], size)} of {render_change(item.total, size)} {unit} per transaction"
            )
    return texts[:_MOST_SAID]


def say_missing(answer: Answer, item: Unattributed) -> str:
    """Why there is nothing, with what would help."""
    experiment = answer.study.plan.experiment
    name = name_environment(experiment.environment(item.environment), experiment)
    return f"{name}: the difference cannot be split: {item.why}; {item.remedy}"


# ------------------------------------------------------------------------------------------------ the whole text


def render_why(answer: Answer) -> str:
    """The answer in a few words, then by cell why: sentences, tables, levels. No line is longer than 78 columns."""
    experiment = answer.study.plan.experiment
    head = [line for each in answer_sentences(answer) if not each.minor for line in _wrap(f"{each.text}.")]
    parts = [head, _list(warning.text for warning in answer.warnings if warning.code in UNSEEN)]
    for cell in experiment.cells:
        title = f"Why: {name_cell(cell, experiment)}"
        parts.append([*_wrap(title), "-" * min(WIDTH, len(title))])
        parts += [_attribution_part(answer, item) for item in answer.attributions if item.cell == cell.identity]
        parts += [_list([say_missing(answer, item)]) for item in answer.unattributed if item.cell == cell.identity]
        parts += [
            _statements(answer, environment, cell) for environment in experiment.environments
            if environment.name != experiment.baseline
        ]  # fmt: skip
        parts += _levels_parts(answer, cell.identity)
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def _statements(answer: Answer, environment: Environment, cell: Cell) -> list[str]:
    lines = [
        *query_lines(answer, environment.name, cell.identity),
        *plan_lines(answer, environment.name, cell.identity),
    ]
    name = name_environment(environment, answer.study.plan.experiment)
    return [*_wrap(f"Statements of {name}:"), *lines] if lines else []


def _wrap(text: str, *, first: str = "", rest: str = "") -> list[str]:
    # a sentence may end with a name that was cut
    return wrap_text(text.replace("....", "..."), WIDTH, first=first, rest=rest)


def _list(texts: Iterable[str]) -> list[str]:
    return [line for text in texts for line in _wrap(f"{text}.", first="- ", rest="  ")]


def _attribution_part(answer: Answer, item: Attribution) -> list[str]:
    causes = say_causes(item)
    lines = _wrap(f"{say_attribution(answer, item)}.")
    lines += _wrap(f"{causes[:1].upper()}{causes[1:]}.") if causes else []
    size, unit = choose_unit(max(item.total.value, item.total.reference))
    heads = (f"{unit} per transaction", "part and statement")
    lines += ["", *_contributions(heads[0], [*item.parts, item.total], size)]
    several = len({row.query for row in item.rows if row.query}) > 1
    if several:
        shown, left = choose_rows(item.rows)
        lines += ["", *_contributions(heads[1], shown, size, name_among_rows)]
        if left:
            lines += _wrap(say_left(left, size, unit), first="  ", rest="  ")
    lines += _wrap(f"{say_samples(item)}; {METHOD_NOTES[item.method]}. Intervals are those of 95 %; what is unresolved "
                   "may be chance, with regard to the number of rows.", first="  ", rest="  ")  # fmt: skip
    return [*lines, *_beside_lines(item.beside), *_process_lines(item.processes, size, unit)]


def say_samples(item: Attribution) -> str:
    """How many samples there are, and who took them."""
    origin = item.origin
    text = (
        f"{count(item.samples, 'sample')} of sessions in {count(item.blocks, 'block')}, by {origin.source.value} at "
        f"{origin.hertz:.0f} Hz"
    )
    if origin.statement_samples is None:
        return text
    few = count(origin.statement_samples, "sample")
    return f"{text} (statements told apart by {few} of {SampleSource.ACTIVITY.value} at {ACTIVITY_HERTZ:.0f} Hz)"


def choose_rows(rows: Sequence[Contribution], most: int = _MOST_ROWS) -> tuple[list[Contribution], list[Contribution]]:
    """Rows that are shown, the resolved ones and the largest, the largest first; and those that are left."""
    first = sorted(rows, key=lambda row: (not row.resolved, -abs(row.difference)))
    shown = sorted(first[:most], key=lambda row: -abs(row.difference))
    return shown, first[most:]


def name_among_rows(item: Contribution) -> str:
    """As `name_row`, beside rows of the same part in named statements."""
    return name_row(item) if item.query or item.part in _OF_NO_STATEMENT else f"{name_part(item)} in other statements"


def _contributions(
    title: str, items: Sequence[Contribution], size: float, name: Callable[[Contribution], str] = name_row
) -> list[str]:
    halves = sorted(half_of(item.interval) / size for item in items)
    digits = choose_decimals(halves[len(halves) // 2])
    names = Column(title=title, cells=tuple(name(item) for item in items))
    columns = [
        Column(title="before", cells=tuple(f"{item.reference / size:.{digits}f}" for item in items)),
        Column(title="after", cells=tuple(f"{item.value / size:.{digits}f}" for item in items)),
        Column(title="change", cells=tuple(render_signed(item.difference / size, digits) for item in items)),
        Column(title="±", cells=tuple(render_half(item, size, digits) for item in items)),
        Column(title="samples", cells=tuple(f"{item.samples:,}" for item in items)),
        Column(title="state", cells=tuple(name_state(resolved=item.resolved) for item in items), words=True),
    ]
    return [line for table in render_tables(names, columns) for line in table]


def name_state(*, resolved: bool) -> str:
    """Whether more than chance is in it."""
    return "resolved" if resolved else "unresolved"


# ------------------------------------------------------------------------------------------------ beside


def _beside_lines(items: Sequence[CountedUse]) -> list[str]:
    if not items:
        return []
    names = Column(title="per transaction or run", cells=tuple(name_beside(item) for item in items))
    columns = [
        Column(title="before", cells=tuple(render_amount(item.reference, item.metric) for item in items)),
        Column(title="after", cells=tuple(render_amount(item.value, item.metric) for item in items)),
        Column(title="change", cells=tuple(map(_render_beside_change, items))),
        Column(title="state", cells=tuple(name_state(resolved=is_clear(item)) for item in items), words=True),
    ]
    tables = render_tables(names, columns, narrowest=_NARROWEST_NAME)
    return ["", *(line for table in tables for line in table)]


def _process_lines(items: Sequence[Contribution], size: float, unit: str) -> list[str]:
    """What the server's other processes did, not in the account of its sessions."""
    if not items:
        return []
    shown, left = choose_rows(items, _MOST_PROCESSES)
    lines = ["", *_contributions(f"other processes, {unit}", shown, size)]
    return [*lines, *_wrap(say_left(left, size, unit), first="  ", rest="  ")] if left else lines


def say_left(left: Sequence[Contribution], size: float, unit: str) -> str:
    """How many rows are not shown, and what they add together."""
    rest = sum(row.difference for row in left) / size
    return f"and {count(len(left), 'smaller row')}, {render_signed(rest, 1)} {unit} together"


def _render_beside_change(item: CountedUse) -> str:
    """1.2 ± 0.3 kB; each with its unit where these differ."""
    change, half = (render_amount(value, item.metric) for value in (item.difference, half_of(item.interval)))
    unit = change.partition(" ")[2]
    return f"{change.removesuffix(unit).rstrip()} ± {half}" if unit == half.partition(" ")[2] else f"{change} ± {half}"


def name_beside(item: CountedUse) -> str:
    """The name of its metric, without the words that the head of the table says."""
    return METRICS[item.metric].title.removesuffix(" per transaction").replace(" during the run", " in a run")


def is_clear(item: CountedUse) -> bool:
    """Whether its interval leaves out zero."""
    return item.interval.low > 0 or item.interval.high < 0


def render_amount(value: float, metric: str) -> str:
    """A mean without "per transaction", which the name of the metric says; of counts with a digit."""
    unit = METRICS[metric].unit
    match unit:
        case Unit.BYTES_PER_TRANSACTION:
            return render_bytes(value)
        case Unit.COUNT:
            return f"{value:.1f}"
        case _:
            return render_value(value, unit).removesuffix("/tx")


# ------------------------------------------------------------------------------------------------ levels


def _levels_parts(answer: Answer, cell: str) -> list[list[str]]:
    """Along each ordered factor the time per transaction of each level, part by part."""
    found = {item.environment: item for item in answer.accounts if item.cell == cell}
    experiment = answer.study.plan.experiment
    parts: list[list[str]] = []
    for axis in answer.axes:
        alone = axis.cell == ALL_CELLS and len(experiment.cells) == 1
        if axis.cell != cell and not alone:
            continue
        for group in axis_groups(experiment, axis):
            accounts = [found[name] for name in group if name in found]
            if len(accounts) > 1:
                parts.append(_levels_table(name_factor(axis.factor), axis.levels, group, accounts))
    return parts


def _levels_table(
    factor: str, levels: Sequence[str], group: Sequence[str], accounts: Sequence[LevelAccount]
) -> list[str]:
    """A column for each level, a row for each part that is a hundredth of one of them at least, and the sum."""
    size, unit = choose_unit(max(item.account.seconds for item in accounts))
    level_of = dict(zip(group, levels, strict=True))
    keys = [(row.part, row.event) for row in accounts[0].account.rows]
    table = [[row.seconds for row in item.account.rows] for item in accounts]
    totals = [item.account.seconds for item in accounts]
    kept = [
        place for place in range(len(keys))
        if any(abs(rows[place]) >= total / 100 for rows, total in zip(table, totals, strict=True))
    ]  # fmt: skip
    names = [keys[place][1] or PART_NAMES[keys[place][0]] for place in kept]
    digits = choose_decimals(min(totals) / size / 500)
    columns = [
        Column(
            title=level_of[item.environment],
            cells=(
                *(f"{rows[place] / size:.{digits}f}" for place in kept),
                f"{math.fsum(rows[place] for place in range(len(keys)) if place not in kept) / size:.{digits}f}",
                f"{item.account.seconds / size:.{digits}f}",
            ),
        )
        for item, rows in zip(accounts, table, strict=True)
    ]
    head = f"Along {factor}, {unit} per transaction (means over {count(accounts[0].blocks, 'block')})"
    tables = render_tables(Column(title=factor, cells=(*names, "smaller ones", "all")), columns)
    return [*_wrap(head), *(line for lines in tables for line in ("", *lines))]
