"""A plan as text for people and as JSON for programs. Pure."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from pgstrata.model.answer import ALL_CELLS
from pgstrata.model.boot import KEYS as BOOT_KEYS
from pgstrata.model.boot import booted_hosts, boots_of, steady_host
from pgstrata.model.driver import DEFAULT_DRIVER
from pgstrata.model.experiment import HERE, Cell, ControlKind, Environment, HostKind, name_hosts
from pgstrata.model.floor import LEAST_DIFFERENCES, Floor
from pgstrata.model.metrics import METRICS
from pgstrata.model.objective import STEPS, step_seconds
from pgstrata.model.plan import DatasetNeed, Design, Plan
from pgstrata.model.reasons import Reason
from pgstrata.report.json.documents import pick_fields, render_document
from pgstrata.report.planning.known_floor import floor_fields
from pgstrata.report.sentences.names import say_claim, say_objective
from pgstrata.report.sentences.reasons import say_notes, say_outgrown, say_reason, say_warnings, say_why_so
from pgstrata.units import render_bytes, render_count, render_duration

_WIDTH = 100
_LIST: Final = " " * 6
"""Indent of names with their values."""
_CELL: Final = (
    "identity workload scale=stated_scale clients until_falls threads protocol run warmup rate rate_share "
    "latency_limit objective=objective_text"
)
# Of two environments: the blocks of a noise floor, one more than it needs.
_FLOOR_BLOCKS: Final = LEAST_DIFFERENCES + 1


def render_plan(plan: Plan, file: str = "FILE") -> str:
    """What would be done, why, what it would cost and what it could see; lines of at most 100 characters.

    Args:
        plan: the plan, with the floors that are known.
        file: the experiment file as the user named it, for commands to give next.
    """
    warnings, outgrown = say_warnings(plan), say_outgrown(plan)
    sections = (
        _head(plan),
        ("Warnings", *(f"  {text}" for text in warnings)),
        ("Environments", *_environments(plan)),
        ("Cells", *(f"  {_cell(plan, cell)}" for cell in plan.experiment.cells)),
        ("Order", *_order(plan)),
        ("Forecast", *_forecast(plan)),
        ("What it can see", *(f"  {text}" for text in _say_sensitivity(plan, file))),
        ("Chosen and noted", *(f"  {note}" for note in say_notes(plan) if note not in {*warnings, *outgrown})),
    )
    told = ("\n".join(line for text in section for line in _wrap(text)) for section in sections if len(section) > 1)
    return "\n\n".join(told) + "\n"


def _wrap(text: str) -> list[str]:
    """Lines of at most 100 characters, unless a word is longer; continued by an indent of two, except in lists."""
    indent = " " * (len(text) - len(text.lstrip(" ")))
    hanging = "" if indent == _LIST else "  "
    return textwrap.wrap(
        text.strip(), _WIDTH, initial_indent=indent, subsequent_indent=indent + hanging, break_on_hyphens=False,
        break_long_words=False,
    ) or [""]  # fmt: skip


def _head(plan: Plan) -> tuple[str, str]:
    experiment = plan.experiment
    metric = METRICS[experiment.metric]
    asked = f"plan {plan.identity}, seed {experiment.seed}: {metric.title} ({experiment.metric})"
    return experiment.question, f"{asked}, a difference of {experiment.threshold * 100:g} % matters"


def _environments(plan: Plan) -> Iterator[str]:
    experiment = plan.experiment
    settings = _shared([environment.settings for environment in experiment.environments])
    layers = _shared([environment.layers for environment in experiment.environments])
    for environment in experiment.environments:
        mark = "  (baseline)" if environment.name == experiment.baseline else ""
        yield f"  {environment.name}: {environment.title}{mark}"
        facts = [] if environment.client_hosts == HERE else [f"clients on {name_hosts(environment.client_hosts)}"]
        facts += [f"connection={environment.connection}", f"checksums={'on' if environment.checksums else 'off'}"]
        facts += _pairs(environment.settings, settings)
        facts += [f"initdb {pair}" for pair in _pairs(environment.initdb)]
        facts += _pairs(environment.layers, layers)
        yield _LIST + ", ".join(facts)
    for title, shared in (("settings", settings), ("layers of the host", layers)):
        if shared:
            yield f"  {title} of all of them:"
            yield _LIST + ", ".join(_pairs(shared))
    if any(environment.layers.keys() - set(BOOT_KEYS) for environment in experiment.environments):
        yield "  the host is changed for each run and is as it was afterwards (`pgstrata host status`)"
    for host in experiment.hosts:
        if number := sum(group.host == host for group in boots_of(experiment.environments)):
            times = render_count(number, "time")
            end = "is switched off" if host.kind is HostKind.VM else "boots its own kernel"
            name = host.text if host.remote else "this machine"
            yield f"  {name} boots {times} in each block, and {end} at the end"
            if not host.remote:
                yield f"{_LIST}`run` needs --reboot (give the same command after each boot) or --resume-after-boot"


def _pairs(values: Mapping[str, str], without: Mapping[str, str] = MappingProxyType({})) -> list[str]:
    return [f"{key}={value}" for key, value in values.items() if key not in without]


def _shared(each: Sequence[Mapping[str, str]]) -> dict[str, str]:
    return {key: value for key, value in each[0].items() if all(other.get(key) == value for other in each)}


def _cell(plan: Plan, cell: Cell) -> str:
    warmup = "" if cell.warmup is None else f", {render_duration(cell.warmup)} of warm-up"
    design = plan.design(cell.identity).describe(cell.run, plan.experiment.environments)
    ends = f"{render_count(cell.clients, 'client')} on {render_count(cell.threads, 'thread')}"
    parts = [f"{cell.identity}: {cell.size}, {ends}, {cell.protocol}, {design}{warmup}"]
    if cell.rate is not None:
        parts.append(f"at {cell.rate:g} transactions per second")
    if cell.rate_share is not None:
        share = f"{100 * cell.rate_share:g} % of the slowest environment's maximum"
        parts.append(f"at {share}, measured before the first block")
    if cell.until_falls:
        parts.append("unless throughput falls with fewer clients")
    if cell.objective is not None:
        steps = f"{STEPS} steps of {render_duration(step_seconds(cell.run))}"
        parts.append(f"highest rate {say_objective(cell.objective)}, searched in {steps}")
    if cell.latency_limit is not None:
        parts.append(f"latency limit {render_duration(cell.latency_limit)}")
    if claim := say_claim(cell):
        parts.append(claim)
    if cell.driver != DEFAULT_DRIVER:
        parts.append(f"by {cell.driver}")
    parts += [f"{script.file} (weight {script.weight})" for script in cell.scripts]
    if cell.checkout:
        parts.append(f"{', '.join(script.file for script in cell.checkout)} of a checkout")
    parts += [f"{key} = {value.splitlines()[0] if value else value}" for key, value in cell.options.items()]
    return ", ".join(parts)


def _order(plan: Plan) -> Iterator[str]:
    for cell in plan.experiment.cells:
        design = plan.design(cell.identity)
        free = "" if design.free_because is None else f"; sessions free: {say_reason(design.free_because)}"
        described = design.describe(cell.run, plan.experiment.environments)
        yield f"  {cell.identity}: {described} ({say_why_so(design)}{free})"
    yield f"  reset = {plan.experiment.reset}: before every run, in all environments"
    if not plan.blocks:
        return
    yield "  block 1, drawn from the seed:"
    booted = booted_hosts(plan.experiment.environments)
    for visit in plan.blocks[0].visits:
        rebooted = plan.experiment.environment(visit.residents[0]).host in booted
        mark = " (one boot)" if rebooted else " (up together)" if len(visit.residents) > 1 else ""
        yield from (f"    {run.identity}{mark}" for stage in visit.stages for run in stage.runs)
    if rest := len(plan.blocks) - 1:
        more = (
            f"{rest} more {'block' if rest == 1 else 'blocks'} of {render_count(len(plan.blocks[0].runs), 'run')} each"
        )
        yield f"  {more}, each in an order of its own: at most {render_count(len(plan.runs), 'run')}"


def _forecast(plan: Plan) -> Iterator[str]:
    forecast, experiment = plan.forecast, plan.experiment
    size = render_bytes(sum(need.bytes for need in forecast.datasets))
    building, block, whole = (
        render_duration(round(seconds))
        for seconds in (forecast.seconds_building, forecast.seconds_per_block, forecast.seconds_total)
    )
    yield f"  {render_count(len(forecast.datasets), 'dataset')}, about {size}: built once, about {building}"
    lines = [_dataset(need) for need in forecast.datasets]
    for line, need in zip(lines, forecast.datasets, strict=True):
        whose = f" ({', '.join(need.environments)})" if need.environments and lines.count(line) > 1 else ""
        yield f"    {line}{whose}"
    yield from (f"  {text}" for text in say_outgrown(plan))
    yield f"  a block takes about {block}; all {experiment.blocks} with the datasets about {whole}"
    if experiment.budget is not None:
        yield f"  the budget is {render_duration(experiment.budget)}"
    yield f"  at most about {render_bytes(forecast.disk_bytes)} of disk"


def _dataset(need: DatasetNeed) -> str:
    at = f" at scale {need.scale}" if need.scale else ""
    return f"server {need.server}: {need.workload}{at}, {render_bytes(need.bytes)}"


def _say_sensitivity(plan: Plan, file: str) -> Iterator[str]:
    """What the floors of the cells promise; where one is missing, what would measure it."""
    yield from _doubts(plan)
    if any(floor.valid for floor in plan.floors.values()):
        # numpy, for which a plan without a floor does not wait
        from pgstrata.report.planning.power import (  # noqa: PLC0415
            power_lines,
            say_threshold,
        )

        yield from power_lines(plan)
        yield from say_threshold(plan)
    missing, host = _missing(plan), steady_host(plan.experiment)
    if host is None and plan.experiment.only_host is not None:
        yield "no noise floor: a floor holds for one boot; the control reboot shows how much equal boots differ"
        return
    if host is None:
        yield "no noise floor: floors are of servers on one machine; a control shows how equals differ on each"
        return
    if missing:
        what = "these cells" if len(missing) == len(plan.experiment.cells) else ", ".join(missing)
        minutes = render_duration(round(floor_seconds(plan)))
        yield f"no noise floor for {what} on {host.named}: `pgstrata floor {file}` measures it in about {minutes}"
    if _renews(plan):
        needed = f"where the control has {LEAST_DIFFERENCES} blocks"
        yield f"{needed}, its differences are kept as a noise floor of {host.named}"


def _doubts(plan: Plan) -> Iterator[str]:
    """Each doubt once; of all cells together only what is not said of a cell."""
    told: set[Reason] = set()
    for floor in sorted(plan.floors.values(), key=_is_together):
        if floor.doubt and not (_is_together(floor) and floor.doubt in told):
            name = "all cells together" if _is_together(floor) else floor.cell
            yield f"the noise floor of {name} is not used: {say_reason(floor.doubt)}"
            told.add(floor.doubt)


def _is_together(floor: Floor) -> bool:
    return floor.cell == ALL_CELLS


def _missing(plan: Plan) -> list[str]:
    """Cells without a floor that may be relied upon."""
    cells = [cell.identity for cell in plan.experiment.cells]
    return [cell for cell in cells if cell not in plan.floors or not plan.floors[cell].valid]


def _renews(plan: Plan) -> bool:
    """Whether the study itself will measure enough of its noise, in blocks that are measured anyway."""
    controls = {environment.control for environment in plan.experiment.environments}
    return len(plan.blocks) >= LEAST_DIFFERENCES and ControlKind.SAME in controls


def floor_seconds(plan: Plan) -> float:
    """About how long a noise floor of the plan's cells takes: two environments, on the data of the baseline."""
    experiment, forecast = plan.experiment, plan.forecast
    block = forecast.seconds_per_block * 2 / len(experiment.environments)
    server = experiment.environment(experiment.baseline).server.text
    share = sum(need.server == server for need in forecast.datasets) / max(1, len(forecast.datasets))
    return forecast.seconds_building * share + _FLOOR_BLOCKS * block


def plan_json(plan: Plan) -> str:
    """The plan for programs; fields are added, never changed, within one schema number."""
    experiment, forecast = plan.experiment, plan.forecast
    content: dict[str, Any] = {
        "schema": 1,
        "plan": plan.identity,
        **pick_fields(experiment, "question metric threshold seed budget"),
        "reset": str(experiment.reset),
        "interleave": str(plan.interleave),
        "order": str(experiment.order),
        "designs": [_design_json(plan.design(cell.identity)) for cell in experiment.cells],
        "baseline": experiment.baseline,
        "factors": list(experiment.factors),
        "environments": [_environment_json(environment) for environment in experiment.environments],
        "cells": [_cell_json(cell) for cell in experiment.cells],
        "blocks": [
            {
                "number": block.number,
                "visits": [
                    {
                        **pick_fields(visit, "identity residents"),
                        "stages": [
                            {"cell": stage.cell, "runs": [pick_fields(run, "identity seed") for run in stage.runs]}
                            for stage in visit.stages
                        ],
                    }
                    for visit in block.visits
                ],
            }
            for block in plan.blocks
        ],
        "forecast": {
            **pick_fields(forecast, "seconds_per_block seconds_building seconds_total disk_bytes"),
            "datasets": [_dataset_json(need) for need in forecast.datasets],
            **_from_floors(plan),
            "floor_seconds": floor_seconds(plan),
            "refresh": None,
        },
        "floors": [floor_fields(floor) for floor in plan.floors.values()],
        "notes": list(say_notes(plan)),
    }
    return render_document(content)


def _dataset_json(need: DatasetNeed) -> dict[str, Any]:
    size = {"scale": need.scale or None, "bytes": need.bytes}
    return {**pick_fields(need, "server workload"), **size, **pick_fields(need, "environments")}


def _from_floors(plan: Plan) -> dict[str, Any]:
    power = []
    if any(floor.valid for floor in plan.floors.values()):
        from pgstrata.report.planning.power import power_json  # noqa: PLC0415 - as above

        power = power_json(plan)
    # a key of former versions
    return {"power": power, "run_lengths": []}


def _design_json(design: Design) -> dict[str, object]:
    return {
        **pick_fields(design, "cell interleave"),
        "reason": say_why_so(design),
        "placement": str(design.placement),
        "free_because": "" if design.free_because is None else say_reason(design.free_because),
        **{name: value or None for name, value in pick_fields(design, "slice_seconds rounds discarded").items()},
    }


def _environment_json(environment: Environment) -> dict[str, object]:
    return {
        "name": environment.name,
        "levels": {level.factor: level.value for level in environment.levels},
        "server": environment.server.text,
        "client": name_hosts(environment.client_hosts),
        **pick_fields(environment, "connection checksums settings initdb options layers control placement"),
    }


def _cell_json(cell: Cell) -> dict[str, object]:
    return {
        **pick_fields(cell, _CELL),
        "scripts": [pick_fields(script, "file weight") for script in cell.scripts],
        **pick_fields(cell, "options profile"),
    }
