"""The highest rate within an objective: several executions of one load, each at a rate that those before it suggest."""

from __future__ import annotations

from dataclasses import replace
from itertools import zip_longest
from typing import Final

from pgstrata.conduct.arm import ActiveArm, scratch_folder
from pgstrata.conduct.drive import drive
from pgstrata.conduct.rig import Rig
from pgstrata.conduct.steps import measure_step, step_part
from pgstrata.model.objective import STEPS, Search, step_seconds
from pgstrata.ports.driver import Load
from pgstrata.ports.events import Event, EventKind
from pgstrata.ports.host import CpuTime, ProcessExit
from pgstrata.stats.objective import Step, next_rate

# Two steps with one seed would draw the same rows at the same times.
_SEEDS_APART: Final = 7919


def search(rig: Rig, arm: ActiveArm, load: Load) -> ProcessExit | None:
    """Make the steps and keep their evidence; None where the driver had to be stopped in one.

    `arm.search` has the rates of all steps that were made. A search ends early where the limit is missed at any rate,
    or the driver fails.

    Returns:
        The code of the last step and the CPU time of all.
    """
    assert arm.cell.objective is not None
    seconds = step_seconds(arm.cell.run)
    arm.search = Search(objective=arm.cell.objective, seconds=seconds, rates=())
    whole, maximum, steps = ProcessExit(code=0, cpu=CpuTime()), 0.0, list[Step]()
    rate: float | None = 0.0
    while rate is not None and len(arm.search.rates) < STEPS:
        number = len(arm.search.rates) + 1
        arm.search = replace(arm.search, rates=(*arm.search.rates, rate))
        evidence, exit_ = _take_step(rig, arm, _step_load(load, rate, seconds, number), number)
        if exit_ is None:
            return None
        whole = _add(whole, exit_)
        if exit_.code:
            break
        if rate:
            steps.append(measure_step(rig.driver(arm.environment, arm.cell), evidence, rate, arm.search))
        else:
            maximum = rig.driver(arm.environment, arm.cell).parse(evidence).tps or 0.0
        rate = next_rate(steps, maximum) if maximum > 0 else None
    return whole


def _step_load(load: Load, rate: float, seconds: float, number: int) -> Load:
    """The load of one step; without a rate there is no log."""
    return replace(
        load,
        cell=replace(load.cell, rate=rate or None),
        seconds=seconds,
        seed=load.seed + _SEEDS_APART * number,
        sampling_rate=load.sampling_rate if rate else None,
    )


def _take_step(rig: Rig, arm: ActiveArm, load: Load, number: int) -> tuple[dict[str, bytes], ProcessExit | None]:
    at = "" if load.cell.rate is None else f" at {load.cell.rate:,.0f}/s"
    text = f"step {number} of {STEPS}{at}"
    rig.events.emit(Event(kind=EventKind.STEP, run=arm.planned.identity, text=text))
    part = step_part(number)
    exit_ = drive(rig, arm, load, part)
    evidence = dict(rig.driver(arm.environment, arm.cell).collect(scratch_folder(rig, arm, part)))
    arm.files.update({f"{part}.{name}": content for name, content in evidence.items()})
    return evidence, exit_


def _add(whole: ProcessExit, step: ProcessExit) -> ProcessExit:
    each = tuple(one + other for one, other in zip_longest(whole.each, step.each, fillvalue=CpuTime()))
    return ProcessExit(code=step.code, cpu=whole.cpu + step.cpu, each=each)
