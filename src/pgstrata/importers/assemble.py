"""Makes observations of results with dimensions: finds environments, cells, repeats and blocks."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pgstrata.compare.import_times import find_sequences
from pgstrata.errors import UsageError
from pgstrata.importers.results import BUILD, Placed
from pgstrata.model.answer import ALL_CELLS
from pgstrata.model.levels import sort_levels
from pgstrata.model.observation import Observation, PairingKey, Repeats, TimeSpan
from pgstrata.sources.moments import render_moment

REPEATED: Final = ("run", "repeat", "repetition", "iteration", "turn", "round", "trial", "block")
"""Dimensions that number repeats unless the user names another."""
_ENVIRONMENT: Final = "environment"
_MOST_LEVELS: Final = 4
_LONGEST_LEVEL: Final = 60
_MOST_DIMENSIONS: Final = 200
"""Of those that have several levels."""
_MOST_APART: Final = 5
_UNFIT: Final = re.compile(r"\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportQuestion:
    """Options of the user: the dimensions that are compared, the one that numbers repeats, how they were measured."""

    compared: tuple[str, ...] = ()
    repeat: str | None = None
    repeats: Repeats = Repeats.UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembled:
    """Observations, sorted by environment, cell and time or repeat, and the dimensions that they are made of.

    `differing` are dimensions that the user did not name and that differ only between environments. `repeat` is
    the one that numbers the repeats; empty if only the order of the results does. `alike` is the number of results
    whose environment, cell and number of the repeat another result has already. `history`: environments have the
    order of time.
    """

    observations: tuple[Observation, ...]
    compared: tuple[str, ...]
    cells: tuple[str, ...]
    differing: tuple[str, ...]
    repeat: str
    alike: int
    history: bool


def assemble(
    placed: Sequence[Placed], question: ImportQuestion, suggested: str, *, history: bool = False
) -> Assembled:  # fmt: skip
    """Make observations of results.

    Args:
        placed: results, at least one.
        question: options of the user.
        suggested: the dimension that the format itself compares; empty if it has none.
        history: whether levels of `suggested` have the order of time, such as commits.

    Raises:
        UsageError: it is not clear what is compared or what numbers the repeats, or the time stamps contradict
            `--repeats in-turns`.
    """
    levels = _collect_levels(placed)
    varying = sum(len(found) > 1 for found in levels.values())
    if varying > _MOST_DIMENSIONS:
        what = f"there are {varying:,} dimensions, and at most {_MOST_DIMENSIONS} are told apart"
        raise UsageError(what, remedy="leave out columns or keys that say nothing of how it was measured")
    repeat = _choose_repeat(levels, question)
    compared = _choose_compared(levels, question, suggested, repeat)
    cells = _choose_cells(placed, levels, compared, repeat)
    ordered = {name: {level: place for place, level in enumerate(sort_levels(name, tuple(filter(None, found))))}
               for name, found in levels.items()}  # fmt: skip
    if history and suggested in levels:
        ordered[suggested] = _sort_by_time(placed, suggested)

    def place_of(each: Placed) -> tuple[object, ...]:
        ranks = [ordered[name].get(each.dimensions.get(name, ""), -1) for name in (*compared, *cells)]
        moment = each.result.started.timestamp() if each.result.started else 0.0
        turn = ordered[repeat].get(each.dimensions.get(repeat, ""), -1) if repeat else 0
        return (*ranks, moment, turn, each.source, each.result.line)

    found = _to_observations(sorted(placed, key=place_of), compared, cells, repeat, question.repeats, ordered)
    if question.repeats is Repeats.IN_TURNS:
        _refuse_contradiction(found)
    return Assembled(
        observations=tuple(found),
        compared=compared,
        cells=cells,
        differing=_find_differing(placed, levels, (*compared, *cells, repeat), compared),
        repeat=repeat,
        alike=_count_alike(found, repeat) if repeat else 0,
        history=history and compared == (suggested,),
    )


def _count_alike(observations: Sequence[Observation], repeat: str) -> int:
    kinds = {(each.target, each.cell, each.dimensions.get(repeat, "")) for each in observations}
    return len(observations) - len(kinds)


def _collect_levels(placed: Sequence[Placed]) -> dict[str, dict[str, None]]:
    """Levels of each dimension, as first met; the last one is empty if some results do not have the dimension."""
    found: dict[str, dict[str, None]] = {}
    counted: Counter[str] = Counter()
    for each in placed:
        counted.update(each.dimensions.keys())
        for name, level in each.dimensions.items():
            found.setdefault(name, {})[level] = None
    for name, levels in found.items():
        if counted[name] < len(placed):
            levels[""] = None
    return found


def _sort_by_time(placed: Sequence[Placed], name: str) -> dict[str, int]:
    """Places of levels by the times of their commits, or else of their first results, or as first met."""
    times: dict[str, float] = {}
    for each in placed:
        moment = each.result.committed or each.result.started
        at = moment.timestamp() if moment is not None else math.inf
        level = each.dimensions.get(name, "")
        times[level] = min(times.get(level, math.inf), at)
    # levels without a time stay where they are, so that times order all levels or none
    known = all(map(math.isfinite, times.values()))
    return {level: place for place, level in enumerate(sorted(times, key=times.__getitem__) if known else times)}


def _choose_repeat(levels: Mapping[str, Mapping[str, None]], question: ImportQuestion) -> str:
    if question.repeat is not None:
        if question.repeat not in levels:
            remedy = f"choose one of {', '.join(levels)}"
            raise UsageError(f"there is no dimension {question.repeat!r}", where="--repeat", remedy=remedy)
        return question.repeat
    known = [name for name in REPEATED if name in levels and name not in question.compared]
    if len(known) > 1:
        raise UsageError(
            f"several dimensions could number the repeats: {', '.join(known)}",
            where="--repeat",
            remedy=f"choose one, such as --repeat {known[0]}",
        )
    return known[0] if known else ""


def _choose_compared(
    levels: Mapping[str, Mapping[str, None]], question: ImportQuestion, suggested: str, repeat: str
) -> tuple[str, ...]:
    unknown = next((name for name in question.compared if name not in levels), None)
    if unknown is not None:
        remedy = f"choose among {', '.join(levels) or 'none: name dimensions with --pattern or --columns'}"
        raise UsageError(f"there is no dimension {unknown!r}", where="--compare", remedy=remedy)
    if question.compared:
        return question.compared
    for name in (_ENVIRONMENT, suggested):
        if name in levels:
            return (name,)
    several = [name for name, found in levels.items() if len(found) > 1 and name != repeat]
    if len(several) == 1:
        return (several[0],)
    said = "; ".join(f"{name} ({_list(found)})" for name, found in levels.items() if name in several)
    raise UsageError(
        "it is not clear which dimension is compared",
        where="--compare",
        details=(said,) if said else (),
        remedy=f"name it, such as --compare {several[0]}" if several else "name dimensions with --pattern",
    )


def _list(levels: Mapping[str, None]) -> str:
    shown = ", ".join(level[:_LONGEST_LEVEL] or "(none)" for level in list(levels)[:_MOST_LEVELS])
    return f"{shown} and {len(levels) - _MOST_LEVELS} more" if len(levels) > _MOST_LEVELS else shown


def _choose_cells(
    placed: Sequence[Placed], levels: Mapping[str, Mapping[str, None]], compared: tuple[str, ...], repeat: str
) -> tuple[str, ...]:
    """Dimensions that vary and that the user named; of the others, those that vary within an environment and cell."""
    named = {name for each in placed[:1] for name in each.named}
    cells: list[str] = []
    for name in sorted(levels, key=lambda each: each not in named):
        if name in compared or name == repeat or len(levels[name]) < 2:  # noqa: PLR2004 - a single level tells nothing
            continue
        groups: dict[tuple[str, ...], set[str]] = defaultdict(set)
        for each in placed:
            groups[tuple(each.dimensions.get(key, "") for key in (*compared, *cells))].add(
                each.dimensions.get(name, "")
            )
        if name in named or any(len(found) > 1 for found in groups.values()):
            cells.append(name)
    return tuple(cells)


def _find_differing(
    placed: Sequence[Placed],
    levels: Mapping[str, Mapping[str, None]],
    known: tuple[str, ...],
    compared: tuple[str, ...],
) -> tuple[str, ...]:
    """Dimensions that are the same within each environment, but differ between environments."""
    found = []
    for name in levels:
        if name in known or len(levels[name]) < 2:  # noqa: PLR2004 - a single level differs from nothing
            continue
        within: dict[tuple[str, ...], set[str]] = defaultdict(set)
        for each in placed:
            within[tuple(each.dimensions.get(key, "") for key in compared)].add(each.dimensions.get(name, ""))
        if all(len(each) == 1 for each in within.values()):
            found.append(name)
    return tuple(name for name in found if not name.endswith(BUILD) or name.removesuffix(BUILD) not in found)


def _to_observations(
    placed: Sequence[Placed], compared: tuple[str, ...], cells: tuple[str, ...], repeat: str, repeats: Repeats,
    ordered: Mapping[str, Mapping[str, int]],
) -> list[Observation]:  # fmt: skip
    """Make observations; in turns, repeats are blocks by number, or else by their order in environment and cell."""
    counted: Counter[tuple[str, str, str]] = Counter()
    blocks: dict[tuple[int, int], PairingKey] = {}
    found = []
    for each in placed:
        target = " ".join(_name(each.dimensions.get(name, "")) for name in compared) or "(none)"
        cell = " ".join(f"{name}={_name(each.dimensions.get(name, '(none)'))}" for name in cells) or ALL_CELLS
        turn = each.dimensions.get(repeat, "") if repeat else ""
        counted[target, cell, turn] += 1
        key = None
        if repeats is Repeats.IN_TURNS:
            again = counted[target, cell, turn]
            number = (ordered[repeat].get(turn, -1) if repeat else 0, again)
            label = " ".join(filter(None, (turn, str(again) if again > 1 or not turn else "")))
            key = blocks.setdefault(number, PairingKey(number=len(blocks) + 1, label=label))
        started = each.result.started
        span = TimeSpan(started=render_moment(started), seconds=each.result.seconds) if started is not None else None
        found.append(
            Observation(
                target=target, cell=cell, measurements=each.result.measurements, key=key, span=span,
                provenance=f"{each.source}:{each.result.line}" if each.result.line > 1 else each.source,
                opening=each.result.opening, dimensions=each.dimensions,
            )
        )  # fmt: skip
    return found


def _name(level: str) -> str:
    return _UNFIT.sub(" ", level) or "(none)"


def _refuse_contradiction(observations: Sequence[Observation]) -> None:
    """UsageError if the time stamps show that one environment was measured completely before another."""
    names = tuple(dict.fromkeys(each.target for each in observations))
    if len({each.key.number for each in observations if each.key is not None}) < 2:  # noqa: PLR2004 - one turn
        return
    for place, name in enumerate(names):
        apart, _ = find_sequences(observations, name, names[place + 1 :])
        if apart:
            more = f" and {len(apart) - _MOST_APART} more" if len(apart) > _MOST_APART else ""
            raise UsageError(
                f"the time stamps contradict it: all runs of {name} were measured before, or after, "
                f"all runs of {', '.join(apart[:_MOST_APART])}{more}",
                where="--repeats in-turns",
                remedy="give --repeats one-after-another, or leave the option out",
            )
