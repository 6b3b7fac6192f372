"""Which projections an experiment has: every axis of enough levels, with each series that crosses it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pgstrata.compare.factors.axes import FEWEST_LEVELS, find_groups
from pgstrata.model.experiment import Cell, Experiment
from pgstrata.model.levels import order_levels
from pgstrata.report.projections.model import (
    CLIENTS,
    ENVIRONMENT,
    PAIR,
    SCALE,
    Curve,
    Place,
    Projection,
    UndrawnAxis,
)
from pgstrata.report.sentences.names import count, name_environment, name_factor, say_rate


def find_projections(experiment: Experiment, fewest: int = FEWEST_LEVELS) -> tuple[Projection, ...]:
    """All of them, kind by kind: factors first, then clients, then scale; each kind in the order of the cells.

    Args:
        experiment: environments and cells.
        fewest: levels that an axis has at least, `PAIR` or more.
    """
    factors = [found for each in experiment.factors for found in _along_factor(experiment, each, fewest)]
    return (*factors, *_along_cells(experiment, CLIENTS, fewest), *_along_cells(experiment, SCALE, fewest))


def find_undrawn(experiment: Experiment) -> tuple[UndrawnAxis, ...]:
    """Axes that have no projection of even two levels, with what they lack."""
    drawn = {each.axis for each in find_projections(experiment, PAIR)}
    found: dict[str, list[str]] = {CLIENTS: [str(cell.clients) for cell in experiment.cells]}
    found[SCALE] = [str(cell.scale) for cell in experiment.cells if cell.data is None]
    for level in (level for each in experiment.environments for level in each.levels):
        found.setdefault(level.factor, []).append(level.value)
    return tuple(
        UndrawnAxis(axis=axis, levels=tuple(dict.fromkeys(levels)))
        for axis, levels in found.items()
        if axis not in drawn
    )


def short_names(experiment: Experiment) -> Mapping[str, str]:
    """Names of environments by their own, without what all of them begin with, such as `kernel = `."""
    names = {each.name: name_environment(each, experiment) for each in experiment.environments}
    return dict(zip(names, shorten_alike(list(names.values())), strict=True))


def shorten_alike(names: Sequence[str]) -> list[str]:
    """Names without their common beginning, which ends at a blank, `=`, `/` or `:`, unless that leaves nothing."""
    if len(names) <= 1:
        return list(names)
    first, last = min(names), max(names)
    alike = next((place for place, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), len(first))
    cut = max((first.rfind(sign, 0, alike) for sign in " =/:"), default=-1) + 1
    short = [name[cut:].strip() for name in names]
    return short if all(short) and len(set(short)) == len(set(names)) else list(names)


def group_cells(experiment: Experiment, axis: str) -> tuple[tuple[Cell, ...], ...]:
    """Cells that differ in clients, or in scale, and in nothing else: ascending along it, groups in their order."""
    groups: dict[tuple[object, ...], list[Cell]] = {}
    for cell in experiment.cells:
        rest = cell.clients if axis == SCALE else cell.size
        alike = (cell.workload, rest, cell.rate, cell.rate_share, cell.objective, cell.protocol, cell.label, cell.data)
        groups.setdefault(alike, []).append(cell)
    return tuple(tuple(sorted(cells, key=lambda cell: _level(cell, axis))) for cells in groups.values())


def say_fixed(cell: Cell, axis: str) -> str:
    """What cells along an axis share: select-only, scale 10; select-only, 4 clients; with rate and objective."""
    rate = f", {say_rate(cell)}" if cell.paced else ""
    limit = f", {cell.objective.text}" if cell.objective is not None else ""
    return f"{cell.workload}, {count(cell.clients, 'client') if axis == SCALE else cell.size}{rate}{limit}"


def _level(cell: Cell, axis: str) -> int:
    return cell.clients if axis == CLIENTS else cell.scale


def _along_cells(experiment: Experiment, axis: str, fewest: int) -> Iterator[Projection]:
    """Clients or scale along x, a curve for each environment."""
    names = short_names(experiment)
    for cells in group_cells(experiment, axis):
        numbers = tuple(_level(cell, axis) for cell in cells)
        if len(set(numbers)) < fewest:
            continue
        curves = tuple(
            Curve(
                name=names[each.name],
                places=tuple(Place(environment=each.name, cell=cell.identity) for cell in cells),
                baseline=each.name == experiment.baseline,
            )
            for each in experiment.environments
        )
        levels, fixed = tuple(map(str, numbers)), say_fixed(cells[0], axis)
        yield Projection(axis=axis, series=ENVIRONMENT, fixed=fixed, levels=levels, curves=curves, numbers=numbers)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rung:
    """One of the environments that differ in a factor alone: by level, and what the levels of the others are."""

    rest: str
    environments: Mapping[str, str]


def _along_factor(experiment: Experiment, factor: str, least: int) -> Iterator[Projection]:
    """Levels of a factor along x: a curve for each number of clients, each scale, and each level of other factors.

    Nothing where no two environments differ in this factor alone: a line would join what differs in others, too.
    """
    groups = find_groups(experiment, factor)
    levels = order_levels(factor, tuple(dict.fromkeys(level for group in groups for level in group)))
    if len(levels) < least or max(map(len, groups)) < PAIR:
        return
    rungs = [_Rung(rest=_say_rest(experiment, factor, group), environments=group) for group in groups]
    for series, fewest in ((CLIENTS, 1), (SCALE, 2)):
        for cells in group_cells(experiment, series):
            if len(cells) >= fewest:
                yield from (_of_cells(factor, levels, rung, cells, series) for rung in rungs)
    if len(rungs) > 1:
        yield from (_of_rungs(factor, levels, rungs, cell) for cell in experiment.cells)


def _of_cells(factor: str, levels: Sequence[str], rung: _Rung, cells: Sequence[Cell], series: str) -> Projection:
    curves = tuple(
        Curve(
            name=count(cell.clients, "client") if series == CLIENTS else cell.size,
            places=_places(levels, rung, cell),
        )
        for cell in cells
    )
    fixed = ", ".join(filter(None, (say_fixed(cells[0], series), rung.rest)))
    return _projection(factor, series, fixed, levels, curves)


def _of_rungs(factor: str, levels: Sequence[str], rungs: Sequence[_Rung], cell: Cell) -> Projection:
    names = shorten_alike([rung.rest for rung in rungs])
    curves = tuple(
        Curve(name=name, places=_places(levels, rung, cell)) for name, rung in zip(names, rungs, strict=True)
    )
    return _projection(
        factor, ENVIRONMENT, f"{say_fixed(cell, CLIENTS)}, {count(cell.clients, 'client')}", levels, curves
    )


def _projection(factor: str, series: str, fixed: str, levels: Sequence[str], curves: tuple[Curve, ...]) -> Projection:
    return Projection(axis=factor, series=series, fixed=fixed, levels=tuple(levels), curves=curves)


def _places(levels: Sequence[str], rung: _Rung, cell: Cell) -> tuple[Place | None, ...]:
    found = (rung.environments.get(level) for level in levels)
    return tuple(Place(environment=name, cell=cell.identity) if name is not None else None for name in found)


def _say_rest(experiment: Experiment, factor: str, group: Mapping[str, str]) -> str:
    """The levels of all other factors, which the environments of a group share: pages = 2MB."""
    first = experiment.environment(next(iter(group.values())))
    others = [level for level in first.levels if level.factor != factor]
    return ", ".join(f"{name_factor(level.factor)} = {level.value}" for level in others)
