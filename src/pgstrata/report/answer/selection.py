"""Some of the comparisons of a study, as a matrix or a list: `show --filter`, `--by` and `--sort`.

Verdicts stay those of the whole study: what is left out counts in the error probability all the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, assert_never

from pgstrata.compare.headlines import primary_comparisons
from pgstrata.errors import UsageError
from pgstrata.experiment.keys import suggest
from pgstrata.model.answer import ALL_CELLS, Answer, Comparison
from pgstrata.model.experiment import Experiment
from pgstrata.model.metrics import METRICS
from pgstrata.report.answer.environment_rows import comparison_row
from pgstrata.report.answer.keys import CELL_KEYS, SortKey, is_of_cells, keys_of, level_of, levels_of
from pgstrata.report.answer.matrix import make_field, make_matrix
from pgstrata.report.answer.tables import comparison_table
from pgstrata.report.blocks.model import Document, Matrix, Paragraph, Remark, Section, Tone, end
from pgstrata.report.sentences.answer import alarm_sentences
from pgstrata.report.sentences.doubts import sum_up_doubts
from pgstrata.report.sentences.names import name_environment, name_factor, name_where
from pgstrata.report.sentences.verdicts import name_baseline

_SAME_WORDS: Final = {"true": "on", "false": "off"}
_NONE: Final = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What is to be shown of all comparisons with the baseline.

    `filters` are pairs of a key (a factor, or workload, scale, clients of cells) and the levels that stay. `by` is the
    key whose levels become the columns of a matrix; with `sort` it is a list instead.
    """

    filters: tuple[tuple[str, tuple[str, ...]], ...] = ()
    by: str = ""
    sort: SortKey | None = None


def parse_selection(filters: Sequence[str], by: str | None, sort: str | None, experiment: Experiment) -> Selection:
    """What a user wrote: KEY=LEVEL,LEVEL, a key, and a word; UsageError where the study has no such thing."""
    if by is not None and sort is not None:
        raise UsageError(
            "--by shows a matrix and --sort a list", where="--sort", remedy="give one of them; --filter goes with both"
        )
    if sort is not None and sort not in set(SortKey):
        raise UsageError(f"{sort!r} is not a valid order", where="--sort", remedy=suggest(sort, SortKey))
    return Selection(
        filters=tuple(_parse_filter(text, experiment) for text in filters),
        by="" if by is None else _parse_key(by, "--by", experiment),
        sort=None if sort is None else SortKey(sort),
    )


def _parse_filter(text: str, experiment: Experiment) -> tuple[str, tuple[str, ...]]:
    written, equals, rest = text.partition("=")
    if not equals or not rest:
        raise UsageError(
            f"{text!r} is not a filter", where="--filter", remedy="write FACTOR=LEVEL, or FACTOR=LEVEL,LEVEL"
        )
    key = _parse_key(written.strip(), "--filter", experiment)
    known = levels_of(key, experiment)
    alike = {_plain(level): level for level in known}
    # a level may have commas of its own
    levels = [rest] if _plain(rest) in alike else rest.split(",")
    for level in levels:
        if _plain(level) not in alike:
            remedy = suggest(level.strip(), known, noun="the levels")
            raise UsageError(f"{name_factor(key)} has no level {level.strip()!r} here", where="--filter", remedy=remedy)
    return key, tuple(alike[_plain(level)] for level in levels)


def _parse_key(written: str, option: str, experiment: Experiment) -> str:
    keys = keys_of(experiment)
    by_name = {name_factor(key).lower(): key for key in reversed(keys)} | {key.lower(): key for key in keys}
    if written.lower() not in by_name:
        remedy = suggest(written, map(name_factor, keys))
        raise UsageError(f"{written!r} is no factor of this study", where=option, remedy=remedy)
    return by_name[written.lower()]


def _plain(level: str) -> str:
    word = level.strip().lower()
    return _SAME_WORDS.get(word, word)


def select(answer: Answer, selection: Selection) -> tuple[Comparison, ...]:
    """The comparisons that stay; UsageError where none does."""
    experiment = answer.study.plan.experiment
    keys = dict.fromkeys(key for key, _ in selection.filters)
    wanted = {key: {level for other, levels in selection.filters if other == key for level in levels} for key in keys}
    of_cells = is_of_cells(selection.by, experiment)
    found = tuple(
        item
        for item in primary_comparisons(answer)
        if all(_value(item, key, experiment) in levels for key, levels in wanted.items())
        and not (of_cells and item.cell == ALL_CELLS)
    )
    if not found:
        raise UsageError(
            f"no comparison with {name_baseline(experiment)} is left",
            where="--filter",
            remedy="name other levels: the baseline is not compared with itself",
        )
    return found


def _value(item: Comparison, key: str, experiment: Experiment) -> str | None:
    """The level of a comparison; of all cells together None where it is a key of cells."""
    if not is_of_cells(key, experiment):
        return level_of(experiment.environment(item.environment), key)
    return None if item.cell == ALL_CELLS else str(getattr(experiment.cell(item.cell), key))


def make_selected_document(answer: Answer, selection: Selection) -> Document:
    """Alarms, the number of comparisons, and the comparisons as a matrix or a list."""
    study, found = answer.study, select(answer, selection)
    experiment = study.plan.experiment
    chosen = replace(answer, comparisons=tuple(item for item in answer.comparisons if item in found))
    whole = len(primary_comparisons(answer))
    of_all = f"{len(found)} of {whole} comparisons" if len(found) < whole else f"all {whole} comparisons"
    said = Paragraph(end(f"Shown are {of_all} with {name_baseline(experiment)}; verdicts are those of the whole study"))
    listed = selection.sort is not None or (len(found) == 1 and not selection.by)
    title = f"Difference in {METRICS[experiment.metric].title} from {name_baseline(experiment)}"
    order = _sorted(found, selection.sort, experiment) if listed else ()
    rows = [comparison_row(answer, item, f", {name_where(item.cell, experiment)}") for item in order]
    return Document(
        name=f"Study {study.name}",
        title=experiment.question,
        summary="",
        answer=(*(Paragraph(end(text), Tone.ALARM) for text in alarm_sentences(answer)), said),
        matrix=None if listed else _matrix(answer, found, selection.by),
        doubts=tuple(Remark(each.text, each.cases) for each in sum_up_doubts(chosen)),
        sections=(Section(title, (comparison_table(rows),), brief=True),) if listed else (),
        colophon="",
    )


def _sorted(found: Sequence[Comparison], key: SortKey | None, experiment: Experiment) -> list[Comparison]:
    cells = [ALL_CELLS, *(cell.identity for cell in experiment.cells)]
    match key:
        case None:
            return list(found)
        case SortKey.EFFECT:
            return sorted(found, key=_smallness)
        case SortKey.NAME:
            return sorted(
                found, key=lambda item: name_environment(experiment.environment(item.environment), experiment)
            )
        case SortKey.CELL:
            return sorted(found, key=lambda item: cells.index(item.cell))
        case _:
            assert_never(key)


def _smallness(item: Comparison) -> float:
    """The largest change first, halves as large as doubles; unknown ones last."""
    if item.effect is None:
        return math.inf
    return -abs(math.log(item.effect)) if item.effect > 0 else -math.inf


def _matrix(answer: Answer, found: Sequence[Comparison], by: str) -> Matrix:
    if not by:
        return make_matrix(answer, found)
    experiment = answer.study.plan.experiment
    levels = [
        level for level in levels_of(by, experiment) if any(_value(one, by, experiment) == level for one in found)
    ]
    if any(_value(item, by, experiment) is None for item in found):
        levels.append(_NONE)
    rows: dict[str, dict[str, Comparison]] = {}
    for item in found:
        name, level = _row_name(item, by, experiment), _value(item, by, experiment) or _NONE
        if level in rows.get(name, {}):
            # they differ in something that has no name of its own
            name = f"{name} [{item.environment}, {item.cell}]"
        rows.setdefault(name, {})[level] = item
    return Matrix(
        title=f"Difference in {METRICS[experiment.metric].title} from {name_baseline(experiment)}, "
        f"by {name_factor(by)}",
        corner=name_factor(by),
        rows=tuple(rows),
        columns=tuple(levels),
        effects=tuple(
            tuple(make_field(row.get(level), experiment.threshold) for level in levels) for row in rows.values()
        ),
    )


def _row_name(item: Comparison, by: str, experiment: Experiment) -> str:
    """What tells a comparison from those in the same column: its other levels, and its cell."""
    environment = experiment.environment(item.environment)
    others = replace(environment, label="", levels=tuple(level for level in environment.levels if level.factor != by))
    if is_of_cells(by, experiment):
        cell = experiment.cell(item.cell)
        parts = [
            f"{key} {getattr(cell, key)}" if key != "workload" else cell.workload for key in CELL_KEYS if key != by
        ]
        return ", ".join((name_environment(environment, experiment), *parts))
    named = name_environment(others, experiment) if others.levels else ""
    if not named and environment.control is not None:
        named = environment.control.value
    return ", ".join(filter(None, (named, name_where(item.cell, experiment))))
