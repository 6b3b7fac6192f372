"""Merged studies: how often two types of machines are said to differ that do not, simulated, by the production code.

Each machine has a level of its own, and an effect of its own, both of which scatter among the machines of a type;
blocks scatter around them. Nothing is drawn but the figures of runs: `merge_parts` gets whole studies.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from figures import Figure

from pgstrata.app.question import load_plan
from pgstrata.compare.merged import merge_parts
from pgstrata.model.answer import Verdict
from pgstrata.model.merged import HOST, Compared, MergedAnswer, MergedPart
from pgstrata.model.metrics import Measurement
from pgstrata.model.plan import Plan
from pgstrata.model.runs import RunRecord, RunStatus, Validity
from pgstrata.model.server import Fingerprint
from pgstrata.model.study import Study
from pgstrata.report.answer.merged import say_limits

STUDIES = int(os.environ.get("REPETITIONS") or 1000)
INSTANCES, MORE_INSTANCES = 3, 5
SEED = 20261128
# SD of ln throughput: of the machines of a type, and of a run on one.
OF_MACHINES = (0.01, 0.03, 0.05)
OF_RUNS = 0.01
# SD of ln(effect) among machines, as a share of that of their levels.
OF_EFFECTS = 0.3
BLOCKS = 8
TRUE_PERCENT = 10
TYPES = ("small, 4 CPUs", "large, 4 CPUs")
EXPERIMENT = """
question = "Is one type of machine faster?"
blocks = {blocks}
[factors]
server = ["17", "18"]
[[cells]]
workload = "select-only"
scale = 1
clients = 2
run = "10s"
"""
_CLAIMED = frozenset({Verdict.BETTER, Verdict.WORSE, Verdict.NEGLIGIBLE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """Machines of each type, how much they scatter, and how much the second type has more (ln)."""

    instances: int
    scatter: tuple[float, float]
    more: float = 0.0


def measure_merged() -> Iterator[Figure]:
    """False differences between types; right ones of 10 %; what one machine of each type is said to show."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "experiment.toml"
        file.write_text(EXPERIMENT.format(blocks=BLOCKS))
        plan = load_plan(file)
    rng = np.random.default_rng(SEED)
    for scatter in ((each, each) for each in OF_MACHINES):
        yield from _errors(rng, plan, scatter)
    yield from _errors(rng, plan, (OF_MACHINES[0], OF_MACHINES[-1]))
    yield _power(rng, plan)
    yield from _alone(rng, plan)


def _errors(rng: np.random.Generator, plan: Plan, scatter: tuple[float, float]) -> Iterator[Figure]:
    truth = Truth(instances=INSTANCES, scatter=scatter)
    answers = [_answer(rng, plan, truth) for _ in range(STUDIES)]
    where = f"machines {_spread(scatter)}"
    parts = _percent([_part_differs(answer) for answer in answers])
    yield Figure(
        name=f"merged: false, types, {where}", value=_percent([_differs(answer, Compared.LEVEL) for answer in answers]),
        goal=5.0, unit="%", notes=(f"some machine differs from the first one, which is true of it: {parts:.1f} %",),
    )  # fmt: skip
    yield Figure(
        name=f"merged: false, effects of types, {where}",
        value=_percent([_differs(answer, Compared.EFFECT) for answer in answers]), goal=5.0, unit="%",
    )  # fmt: skip
    one = [effect for answer in answers for effect in answer.types if effect.interval is not None]
    outside = [not each.interval.low <= 1.0 <= each.interval.high for each in one if each.interval is not None]
    # Student's t is exact here: so many studies come out on either side of 5 %
    error = 100 * math.sqrt(0.05 * 0.95 / len(outside))
    yield Figure(
        name=f"merged: false, effect on a type, {where}", value=_percent(outside), goal=round(5 + 2 * error, 1),
        unit="%", notes=(f"of {len(outside)}; the goal is 5 % and two standard errors",),
    )  # fmt: skip


def _power(rng: np.random.Generator, plan: Plan) -> Figure:
    """Of a true difference: the goal is for machines that scatter little, the others have what their number allows."""
    found = {
        (spread, instances): _found(rng, plan, spread, instances)
        for spread in OF_MACHINES
        for instances in (INSTANCES, MORE_INSTANCES)
    }
    notes = tuple(
        f"machines {100 * spread:g} %: {found[spread, INSTANCES]:.1f} % with {INSTANCES} of each type, "
        f"{found[spread, MORE_INSTANCES]:.1f} % with {MORE_INSTANCES}"
        for spread in OF_MACHINES
    )
    least = OF_MACHINES[0]
    return Figure(
        name=f"merged: {TRUE_PERCENT} % found, machines {100 * least:g} %", value=found[least, INSTANCES], goal=95.0,
        unit="%", low_is_good=False, notes=notes,
    )  # fmt: skip


def _found(rng: np.random.Generator, plan: Plan, spread: float, instances: int) -> float:
    truth = Truth(instances=instances, scatter=(spread, spread), more=math.log1p(TRUE_PERCENT / 100))
    return _percent([_differs(_answer(rng, plan, truth), Compared.LEVEL) for _ in range(STUDIES // 4)])


def _alone(rng: np.random.Generator, plan: Plan) -> Iterator[Figure]:
    """One machine of each type: nothing may be said of types, and the answer says so."""
    truth = Truth(instances=1, scatter=(OF_MACHINES[1], OF_MACHINES[1]))
    answers = [_answer(rng, plan, truth) for _ in range(STUDIES // 4)]
    claims = [bool(answer.type_differences) or any(each.interval for each in answer.types) for answer in answers]
    apart = _percent([_part_differs(answer) for answer in answers])
    yield Figure(
        name="merged: types claimed of one machine each", value=_percent(claims), goal=0.0, unit="%",
        notes=(f"the two machines differ, which is true of them: {apart:.1f} %",),
    )  # fmt: skip
    said = [all(_is_told(answer, part) for part in answer.parts) for answer in answers]
    yield Figure(
        name="merged: told that no type can be claimed", value=_percent(said), goal=100.0, unit="%", low_is_good=False
    )


def _is_told(answer: MergedAnswer, part: MergedPart) -> bool:
    return any(
        text.startswith(f"nothing can be claimed about the type of {part.name} ({part.kind})")
        for text in say_limits(answer)
    )


def _answer(rng: np.random.Generator, plan: Plan, truth: Truth) -> MergedAnswer:
    parts = []
    for number, (kind, scatter) in enumerate(zip(TYPES, truth.scatter, strict=True)):
        for instance in range(truth.instances):
            level = rng.normal(number * truth.more, scatter)
            effect = rng.normal(0, OF_EFFECTS * scatter)
            name = f"{kind[0]}{instance + 1}"
            parts.append(MergedPart(name=name, study=_study(rng, plan, name, level, effect), kind=kind))
    return merge_parts("all", HOST, parts)


def _study(rng: np.random.Generator, plan: Plan, name: str, level: float, effect: float) -> Study:
    second = plan.experiment.environments[1].name
    runs = []
    for run in plan.runs:
        value = 1000 * math.exp(level + (effect if run.environment == second else 0.0) + rng.normal(0, OF_RUNS))
        runs.append(
            RunRecord(
                identity=run.identity, block=run.block, environment=run.environment, cell=run.cell,
                status=RunStatus.COMPLETED, validity=Validity.VALID, reasons=(),
                started=f"2026-01-01T00:00:{run.block:02}+00:00", measured_seconds=10.0,
                measurements=(Measurement(metric="tps", value=value),),
            )
        )  # fmt: skip
    nothing = Fingerprint(facts={})
    return Study(
        name=name, plan=plan, runs=tuple(runs), host=nothing, client=nothing, environments={},
        created="2026-01-01T00:00:00+00:00", version="0",
    )  # fmt: skip


def _differs(answer: MergedAnswer, compared: Compared) -> bool:
    return any(item.differs for item in answer.type_differences if item.compared is compared)


def _part_differs(answer: MergedAnswer) -> bool:
    return any(item.verdict in _CLAIMED for item in answer.levels)


def _spread(scatter: tuple[float, float]) -> str:
    first, second = (f"{100 * each:g}" for each in scatter)
    return f"{first} %" if first == second else f"{first} and {second} %"


def _percent(found: Sequence[bool]) -> float:
    return 100 * float(np.mean(found))
