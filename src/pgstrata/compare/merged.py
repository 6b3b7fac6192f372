"""Compares within and between the parts of a merged study (of several machines, boots or days).

A block belongs to one part: environments of different parts never share one. Within parts environments are compared
block by block, by the rule of a study, and the headlines of all parts share the error probability. Between parts
nothing was measured side by side. Effects and levels are compared by the unpaired form, exploratory, and a difference
of levels is confounded with everything else that differs between the parts. For a type of machine, the machine is the
replicate: blocks of one machine say nothing of how much machines of its type scatter.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from pgstrata.compare.environments.differences import undeclared_differences
from pgstrata.compare.environments.surroundings import claim_warnings
from pgstrata.compare.gate import gate_code
from pgstrata.compare.headlines import FAULTY, doubt_equivalences
from pgstrata.compare.pairing.arms import sort_runs
from pgstrata.compare.pairing.pairs import Pairing, over_cells, pair_cells, to_interval, to_ratio
from pgstrata.compare.verdicts.comparisons import find, to_comparison
from pgstrata.compare.verdicts.doubts import find_doubts
from pgstrata.compare.verdicts.judging import Judged, ask, judge_family, make_rule
from pgstrata.errors import ExitCode
from pgstrata.model.answer import Interval
from pgstrata.model.experiment import Cell, Environment, Experiment
from pgstrata.model.merged import (
    HOST,
    LEAST_INSTANCES,
    Between,
    Compared,
    MergedAnswer,
    MergedPart,
    PartComparison,
    PartDoubt,
    TypeDifference,
    TypeEffect,
    Unlike,
)
from pgstrata.stats.ranks import FloatArray
from pgstrata.stats.student import two_sided_point, welch_interval
from pgstrata.stats.unpaired import decide_unpaired
from pgstrata.units import Direction

_ERROR: Final = 0.05


def find_unlike(parts: Sequence[MergedPart]) -> Unlike | None:
    """Why parts cannot be merged (different questions, or copies of the same runs); None if they can be."""
    first, seen = parts[0], dict[tuple[str, str], str]()
    for part in parts:
        one, other = _asked(first.study.plan.experiment), _asked(part.study.plan.experiment)
        for what, value in one.items():
            if other[what] != value:
                return Unlike(first=first.name, other=part.name, what=what)
        for run in part.study.runs:
            earlier = seen.setdefault((run.identity, run.started), part.name)
            if earlier != part.name:
                return Unlike(first=earlier, other=part.name, run=run.identity)
    return None


def _asked(experiment: Experiment) -> dict[str, object]:
    return {
        "metric": experiment.metric,
        "threshold": experiment.threshold,
        "baseline": experiment.baseline,
        "cells": tuple(map(_is_run, experiment.cells)),
        "synthetic": experiment.synthetic,
        "environments": tuple((each.name, each.control) for each in experiment.environments),
    }


def _is_run(cell: Cell) -> tuple[object, ...]:
    """A cell by all that its transactions are made of; how long it is measured may differ."""
    scripts = tuple((script.text, script.weight) for script in cell.scripts)
    data = cell.data.digest if cell.data is not None else ""
    return cell.identity, cell.driver, cell.protocol, cell.objective, dict(cell.options), scripts, data


def merge_parts(name: str, factor: str, parts: Sequence[MergedPart]) -> MergedAnswer:
    """Compare parts for which `find_unlike` has found nothing."""
    judged = _judge(parts)
    comparisons = tuple(_to_comparison(part, each) for part, found in judged for each in found)
    return MergedAnswer(
        name=name,
        factor=factor,
        parts=tuple(parts),
        comparisons=comparisons,
        effects=tuple(_compare_effects(judged)),
        levels=tuple(_compare_levels(judged)),
        types=tuple(_judge_types(judged)) if factor == HOST else (),
        type_differences=tuple(_compare_types(judged)) if factor == HOST else (),
        unlike=_unlike(parts),
        warnings=(*_doubt_parts(parts), *_doubt_all(comparisons)),
    )


def merged_code(answer: MergedAnswer) -> ExitCode:
    """The exit code of `gate`: worse if any part is worse, doubtful if a control differs in any part."""
    asked = [item.comparison.verdict for item in answer.comparisons if not item.comparison.control]
    controls = {item.comparison.verdict for item in answer.comparisons if item.comparison.control}
    return gate_code(asked, doubtful=bool(controls & FAULTY))


_JudgedParts = Sequence[tuple[MergedPart, Sequence[Judged]]]


def _judge(parts: Sequence[MergedPart]) -> _JudgedParts:
    """Judge the headlines of each part; all except controls are one family."""
    heads = [_heads(part) for part in parts]
    asked = iter(judge_family([head for found in heads for head in found if head.control is None]))
    controls = {
        id(head): each for found in heads for head in found if head.control is not None for each in judge_family([head])
    }
    return [
        (part, [controls[id(head)] if head.control is not None else next(asked) for head in found])
        for part, found in zip(parts, heads, strict=True)
    ]


def _heads(part: MergedPart) -> list[Pairing]:
    question = ask(part.study.plan)
    arms = sort_runs(part.study.runs, frozenset({question.metric}))
    return [over_cells(pair_cells(arms, question, name)) for name in question.environments]


def _to_comparison(part: MergedPart, judged: Judged) -> PartComparison:
    finding = find(judged, over=True)
    return PartComparison(part=part.name, comparison=to_comparison(finding, find_doubts(finding)))


def _compare_effects(judged: _JudgedParts) -> Iterator[Between]:
    """Compare each environment's difference from the baseline with that in the first part."""
    (first, base), *others = judged
    for part, found in others:
        for one, other in zip(base, found, strict=True):
            if one.pairing.control is None:
                sign = other.pairing.question.sign
                values, base_values = np.exp(sign * other.pairing.sample), np.exp(sign * one.pairing.sample)
                yield _between(other.pairing, other.pairing.environment, (part, values), (first, base_values))


def _compare_levels(judged: _JudgedParts) -> Iterator[Between]:
    """Compare the metric itself with that in the first part, for the baseline first."""
    (first, base), *others = judged
    for part, found in others:
        pairs = list(zip(base, found, strict=True))
        for one, other in pairs[:1]:
            sides = (part, other.pairing.base_levels), (first, one.pairing.base_levels)
            yield _between(other.pairing, other.pairing.question.baseline, *sides)
        for one, other in pairs:
            if one.pairing.control is None:
                sides = (part, other.pairing.levels), (first, one.pairing.levels)
                yield _between(other.pairing, other.pairing.environment, *sides)


def _between(
    pairing: Pairing, environment: str, side: tuple[MergedPart, FloatArray], base: tuple[MergedPart, FloatArray]
) -> Between:
    question = pairing.question
    values, base_values = (found[np.isfinite(found) & (found > 0)] for _, found in (side, base))
    decision = decide_unpaired(
        values, base_values, rule=make_rule(question), higher_is_better=question.direction is Direction.HIGHER
    )
    shown = decision.estimate
    return Between(
        environment=environment,
        part=side[0].name,
        reference=base[0].name,
        verdict=decision.verdict,
        effect=to_ratio(question.sign * shown.centre) if shown else None,
        interval=to_interval(shown.interval, question.sign) if shown else None,
        values=values.size,
        base_values=base_values.size,
    )


# ------------------------------------------------------------------------------------------------ types of machines


def _by_type(judged: _JudgedParts) -> dict[str, list[Sequence[Judged]]]:
    kinds: dict[str, list[Sequence[Judged]]] = {}
    for part, found in judged:
        kinds.setdefault(part.kind, []).append(found)
    return kinds


def _judge_types(judged: _JudgedParts) -> Iterator[TypeEffect]:
    for kind, members in _by_type(judged).items():
        for place, one in enumerate(members[0]):
            if one.pairing.control is None:
                yield _judge_type(kind, [found[place] for found in members])


def _judge_type(kind: str, machines: Sequence[Judged]) -> TypeEffect:
    """Student's t over the estimates of the machines; each counts once, whatever its number of blocks."""
    name = machines[0].pairing.environment
    centres = _effects_of(machines)
    if not kind or centres.size < LEAST_INSTANCES:
        return TypeEffect(kind=kind, environment=name, instances=len(machines))
    sign, mean = machines[0].pairing.question.sign, float(centres.mean())
    error = float(centres.std(ddof=1)) / math.sqrt(centres.size)
    reach = two_sided_point(_ERROR, centres.size - 1) * error
    low, high = sorted((to_ratio(sign * (mean - reach)), to_ratio(sign * (mean + reach))))
    return TypeEffect(
        kind=kind,
        environment=name,
        instances=len(machines),
        effect=to_ratio(sign * mean),
        interval=Interval(low=low, high=high),
    )


def _effects_of(machines: Sequence[Judged]) -> FloatArray:
    """Oriented log effects of one environment, one of each machine that has an estimate."""
    estimates = [each.decision.estimate for each in machines if each.pairing.is_estimable]
    return np.array([found.centre for found in estimates if found is not None])


def _levels_of(machines: Sequence[Judged]) -> FloatArray:
    """Logarithms of the metric of the baseline, one of each machine: the median of its blocks."""
    levels = [each.pairing.base_levels for each in machines]
    known = [np.log(found[np.isfinite(found) & (found > 0)]) for found in levels]
    return np.array([float(np.median(found)) for found in known if found.size])


def _compare_types(judged: _JudgedParts) -> Iterator[TypeDifference]:
    """Each type against the first one, of those with enough machines: the baseline's metric, then the effects."""
    enough = {kind: found for kind, found in _by_type(judged).items() if kind and len(found) >= LEAST_INSTANCES}
    if not enough:
        return
    (reference, base), *others = enough.items()
    for kind, members in others:
        for place, one in enumerate(base[0]):
            sides = [[found[place] for found in each] for each in (members, base)]
            if place == 0:
                values, base_values = map(_levels_of, sides)
                baseline = one.pairing.question.baseline
                yield from _type_difference((kind, values), (reference, base_values), baseline, Compared.LEVEL)
            if one.pairing.control is None:
                sign = one.pairing.question.sign
                values, base_values = (sign * _effects_of(each) for each in sides)
                name = one.pairing.environment
                yield from _type_difference((kind, values), (reference, base_values), name, Compared.EFFECT)


def _type_difference(
    side: tuple[str, FloatArray], base: tuple[str, FloatArray], environment: str, compared: Compared
) -> Iterator[TypeDifference]:
    """Welch's t over values of machines; nothing where too few of them have one."""
    (kind, values), (reference, base_values) = side, base
    if min(values.size, base_values.size) < LEAST_INSTANCES:
        return
    low, high = welch_interval(values, base_values, _ERROR)
    yield TypeDifference(
        kind=kind,
        reference=reference,
        environment=environment,
        compared=compared,
        instances=values.size,
        base_instances=base_values.size,
        effect=to_ratio(float(values.mean() - base_values.mean())),
        interval=Interval(low=to_ratio(low), high=to_ratio(high)),
    )


# ------------------------------------------------------------------------------------------------ doubts


def _doubt_parts(parts: Sequence[MergedPart]) -> Iterator[PartDoubt]:
    """What holds for a part as a whole; what its own runs were like is shown with the part itself."""
    for part in parts:
        study = part.study
        differences = undeclared_differences(study.environments, study.plan.experiment)
        yield from (PartDoubt(part=part.name, doubt=doubt) for doubt in (*claim_warnings(study), *differences))


def _doubt_all(comparisons: Sequence[PartComparison]) -> Iterator[PartDoubt]:
    for doubt in doubt_equivalences(item.comparison for item in comparisons):
        yield PartDoubt(part="", doubt=doubt)


def _unlike(parts: Sequence[MergedPart]) -> tuple[str, ...]:
    """What differs between the parts although environment and cell have the same name."""
    first, *others = (part.study.plan.experiment for part in parts)
    found = {name for other in others for name in _differing(first, other)}
    return tuple(sorted(found))


def _differing(one: Experiment, other: Experiment) -> Iterator[str]:
    for own, theirs in zip(one.environments, other.environments, strict=True):
        known, given = _described(own), _described(theirs)
        yield from (name for name in {**known, **given} if known.get(name) != given.get(name))
    for cell, again in zip(one.cells, other.cells, strict=True):
        if (cell.run, cell.warmup) != (again.run, again.warmup):
            yield f"run ({cell.identity})"


def _described(environment: Environment) -> Mapping[str, str]:
    """What an environment consists of by name, except its machine."""
    return {
        **environment.settings,
        **{f"options.{name}": value for name, value in environment.options.items()},
        **{f"initdb.{name}": value for name, value in environment.initdb.items()},
        **environment.layers,
        "server": environment.server.text,
        "connection": str(environment.connection),
        "checksums": str(environment.checksums),
    }
