"""The page of the documentation that the bank writes: nothing on it is written by hand."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from bank import long_runs
from bank.components import Scatter
from bank.conditions import FOR_CONDITION, FOR_VALIDATION, QUESTIONS, Condition, planned_tasks, title_of
from bank.replay import Share
from bank.rows import Row, Visits, background_of, truth_of, truths
from bank.studies import LiveStudy
from live import Known

PAGE: Final = Path(__file__).parents[2] / "docs" / "detection.md"
_NONE: Final = "-"
SIDES: Final = {"quiet": "quiet", "busy": "beside a busy loop", "shared": "shared with others"}
DESIGNS: Final = {"paired": "slices, paired", "free": "slices, free", "runs": "run by run, 10 s"}
HEAD: Final = """\
# How soon differences are found

`ONLY=bank make bench` writes this page from visits of real servers, which are in `bench/bank/data`.
[CONTRIBUTING.md](../CONTRIBUTING.md#benchmarks) says how to measure more of them.

**{state}**

{machines}

## How many minutes does an answer take?

Each row is a question about two environments, with the data built. Studies are drawn from recorded visits and judged
by the usual rule ([methods.md](methods.md#how-a-verdict-is-reached)). The threshold is 3 % for a difference of 5 %,
1 % for 2 %, and 0.5 % for 1 %.

- **Right**: the verdict is right and comes within the goal, set-up included. A later verdict counts as undecided.
- **Truth inside**: the interval at the end contains the true difference. For equal environments this is zero. Otherwise
  it is the estimate from the other half of the visits. This estimate has an error of its own, which lowers the share.
- **Rounds**: a visit has 16 rounds if the threshold is below 2 %, or if something is written, else 8. Of visits that
  were recorded with 16, questions with 8 use the first eight. The last column counts visits with too few.
- **As recorded**: right within the goal if studies are stretches of the recording, and not visits drawn one by one.
- Brackets are 95 % intervals, from drawing stretches of five visits. A goal is reached ("ok") with 95 % in both shares.
- A condition wants {shares} visits, in equal parts of the kinds of pairs that are asked about. Rows with fewer are not
  complete, and uncertain.
"""
LONG_RUNS: Final = """
For comparison, **simulated**: three runs of 30 minutes of one environment, then three of the other, with 2 clients,
judged by Welch's test at 5 %. The noise is that of two models ([noise.md](noise.md)). One was fitted to runs of 2 and
8 s in a quiet hour, and its drift is extended to three hours here. The other one was assumed, with hardly any drift.
"""
LIVE: Final = """
Complete studies that were measured, not drawn, and stopped when they were decided:
"""
SCATTER: Final = """
## How much do equal environments scatter?

*D* is the difference of one visit by its first eight rounds, and its SD is taken about zero. "*D* by rounds" is the SD
of *D* if the rounds of all visits were distributed to visits at random. "Lasting" is the rest: differences between
starts, placement of sessions, and noise that lasts for seconds. All figures are in percent; {validation} visits make a
row complete.
"""
TRUTHS: Final = """
## Does the placement of sessions change the answer?

The table has the same differences with sessions paired with CPUs, and with free ones. "Planned anew" is
`plan_cache_mode = force_custom_plan`, which plans each execution, as the simple protocol does. pgbench's protocol
belongs to a cell and cannot differ between environments.
"""


def write_page(
    bank: Visits,
    rows: Sequence[Row],
    scatter: Mapping[Condition, Scatter],
    studies: Sequence[LiveStudy],
    file: Path = PAGE,
) -> None:
    """The whole page anew."""
    parts = [
        HEAD.format(state=_state(bank), shares=FOR_CONDITION, machines=_machines(bank)),
        *_minutes(bank, rows),
        LIVE,
        *_live(studies),
        *_long_runs(),
    ]
    parts += [SCATTER.format(validation=FOR_VALIDATION), *_scatter(scatter), TRUTHS, *_truths(bank)]
    file.write_text("\n".join(part.rstrip("\n") for part in parts) + "\n")


def _state(bank: Visits) -> str:
    tasks = list(planned_tasks())
    have = [sum(map(task.takes, bank.get(task.condition, {}).get(task.kind, ()))) for task in tasks]
    complete = sum(number >= task.visits for number, task in zip(have, tasks, strict=True))
    others = sum(len(visits) for each, kinds in bank.items() if each.side == "shared" for visits in kinds.values())
    dates = sorted(visit.started for kinds in bank.values() for visits in kinds.values() for visit in visits)
    when = f" The first is of {dates[0][:10]}, the last of {dates[-1][:10]}." if dates else ""
    return (
        f"{complete} of {len(tasks)} planned series of visits are complete, {sum(number > 0 for number in have)} are "
        f"begun. {others} visits are of a shared machine, for which there are no goals.{when}"
    )


def _machines(bank: Visits) -> str:
    """The range of throughput, which shows how much the machines differed: visits keep no other facts of them."""
    asked = ("select-only", 2, "quiet")
    kinds = [kinds for each, kinds in bank.items() if (each.workload, each.clients, each.side) == asked]
    found = [visit.level for each in kinds for visits in each.values() for visit in visits if visit.level > 0]
    if not found:
        return "Nothing is known of the machines of these visits."
    low, high = (f"{round(level, -3):,.0f}" for level in (min(found), max(found)))
    return (
        f"With 2 clients that read, on a quiet machine, visits reached {low} to {high} transactions per second. "
        "No other facts of their machines are known."
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Sequence[str]:
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return ["", f"| {' | '.join(head)} |", "|" + "---|" * len(head), *lines] if lines else ["", "No visits yet."]


def place_of(condition: Condition) -> str:
    """Workload, clients, machine."""
    return f"{condition.workload}, {condition.clients} clients, {SIDES[condition.side]}"


def _minutes(bank: Visits, rows: Sequence[Row]) -> Sequence[str]:
    head = ("load and machine", "question", "measured in", "visits", "truth, %", "right, %", "wrong, undecided, %",
            "truth inside, %", "median minutes", "as recorded, %", "others' CPU, %", "goal")  # fmt: skip
    return _table(head, (_minutes_row(bank, row) for row in rows))


def _minutes_row(bank: Visits, row: Row) -> Sequence[str]:
    found, condition = row.found, row.condition
    others = background_of(bank[condition]) if condition in bank else math.nan
    goal = "none" if row.minutes is None else f"{row.minutes:g} min"
    limit = "" if row.limit is None else f"; detection limit {_limit(row.limit)}"
    return (
        place_of(condition), row.question.name, DESIGNS[condition.design], str(row.visits),
        _known(row.truth),
        _NONE if found is None else str(found.right),
        _NONE if found is None else f"{found.whole.wrong:.0f}, {found.whole.undecided:.0f}",
        _NONE if found is None else str(found.covered),
        _NONE if found is None else _number(found.whole.minutes, ".1f", "never"),
        _NONE if found is None else f"{found.in_order:.0f}",
        _number(others, ".0f", _NONE),
        f"{goal}; {row.state}{limit}" if row.state else f"{goal}{limit}",
    )  # fmt: skip


def _limit(percent: float) -> str:
    return f"{percent:g} %" if math.isfinite(percent) else "beyond 45 %"


def _known(known: Known | None) -> str:
    if known is None:
        return _NONE
    if not math.isfinite(known.low):
        return f"{known.change:+.1f} (too few)"
    return f"{known.change:+.1f} [{known.low:+.1f}, {known.high:+.1f}]"


def _number(value: float, form: str, otherwise: str) -> str:
    return format(value, form) if math.isfinite(value) else otherwise


def _live(studies: Sequence[LiveStudy]) -> Sequence[str]:
    found: dict[tuple[Condition, str], list[LiveStudy]] = {}
    for study in studies:
        found.setdefault((study.condition, study.question), []).append(study)
    rows = (
        (place_of(condition), name, DESIGNS[condition.design], "; ".join(_live_text(each) for each in made))
        for (condition, name), made in found.items()
    )
    return _table(("load and machine", "question", "measured in", "verdicts, %"), rows)


def _live_text(study: LiveStudy) -> str:
    return f"{study.verdict} after {study.seconds / 60:.1f} min, {study.blocks} blocks, {_known(study.known)}"


def _long_runs() -> Sequence[str]:
    """What usual practice would say: simulated, not measured."""
    rows = []
    for workload in dict.fromkeys(question.workload for question in QUESTIONS):
        asked = [question for question in QUESTIONS if question.workload == workload]
        for model, runs in long_runs.simulate(workload).items():
            shares = [f"{each.name} in {long_runs.right_share(runs, each):.0f} %" for each in asked]
            spread = f"{long_runs.spread_of(runs):.1f}"
            rows.append((workload, model, spread, "; ".join(shares), f"{long_runs.MINUTES:.0f}"))
    return [
        LONG_RUNS,
        *_table(("load", "noise", "robust SD of the difference of two runs, %", "right", "minutes"), rows),
    ]


def _scatter(scatter: Mapping[Condition, Scatter]) -> Sequence[str]:
    head = ("load and machine", "measured in", "visits", "SD of *D*", "robust", "between rounds", "*D* by rounds",
            "lasting", "CV of throughput", "server ÷ client CPU")  # fmt: skip
    rows = (
        (
            place_of(condition), DESIGNS[condition.design], _enough(each.visits), _decimals(each.spread),
            f"{each.robust:.1f}", f"{each.between_rounds:.1f}", f"{each.of_rounds:.1f}",
            _decimals(each.lasting), f"{each.level:.0f}",
            _number(each.cpu_ratio, ".1f", _NONE),
        )
        for condition, each in scatter.items()
    )  # fmt: skip
    return _table(head, rows)


def _enough(visits: int) -> str:
    return str(visits) if visits >= FOR_VALIDATION else f"{visits}, not complete"


def _decimals(share: Share) -> str:
    return f"{share.value:.1f} [{share.low:.1f}, {share.high:.1f}]"


def _truths(bank: Visits) -> Sequence[str]:
    rows = []
    for condition, kind, found in truths(bank):
        by_design = [
            f"{_known(truth_of(found[design]))}, {_enough(len(found[design]))}" if design in found else _NONE
            for design in ("paired", "free", "runs")
        ]
        rows.append((place_of(condition), title_of(kind), *by_design))
    return _table(("load and machine", "difference", *(f"{name}: %, visits" for name in DESIGNS.values())), rows)
