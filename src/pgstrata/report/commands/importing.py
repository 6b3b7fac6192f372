"""The summary of an import: what is in the file, what was left out and why, and what to do next."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pgstrata.model.metrics import METRICS
from pgstrata.model.observation import Observation
from pgstrata.report.sentences.names import count
from pgstrata.units import printable

_MOST_LISTED: Final = 10
_MOST_LEVELS: Final = 12
_MOST_FOLDERS: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportSummary:
    """The facts of a summary.

    `asked`: whether the user has said how repeats were measured; `by_order`: whether blocks follow from the order of
    the results alone. `left_out` are places with reasons, `unfit` paths that do not fit the pattern, or names that the
    tool does not give to results. `lower` are metrics of which the files say that lower values are better. `history`:
    environments have the order of time. `alike` results have an environment, a cell and a number of the repeat, which
    is the dimension `repeat`, that another result has already.
    """

    file: str
    observations: Sequence[Observation]
    compared: Sequence[str]
    cells: Sequence[str]
    differing: Sequence[str]
    asked: bool
    by_order: bool
    files: int
    logs: int
    unfit: Sequence[str]
    left_out: Sequence[tuple[str, str]]
    lower: frozenset[str] = frozenset()
    history: bool = False
    by_pattern: bool = True
    repeat: str = ""
    alike: int = 0


def render_import(summary: ImportSummary) -> str:
    """Lines of text, bounded however many files there are."""
    return "".join(f"{printable(line)}\n" for line in _lines(summary))


def _lines(summary: ImportSummary) -> Iterator[str]:
    names = tuple(dict.fromkeys(each.target for each in summary.observations))
    cells = tuple(dict.fromkeys(each.cell for each in summary.observations))
    metrics = tuple(dict.fromkeys(name for each in summary.observations for name in each.measurements))
    files = count(summary.files, "file")
    logs = f" and {count(summary.logs, 'log')} of pgbench" if summary.logs else ""
    yield f"{summary.file}: {count(len(summary.observations), 'result')} from {files}{logs}"
    yield f"  compared: {' and '.join(summary.compared)}: {_some(names)}"
    if summary.cells:
        yield f"  {count(len(cells), 'cell')} by {', '.join(summary.cells)}"
    yield f"  metrics: {_some(metrics)}"
    lower = tuple(name for name in metrics if name in summary.lower and name not in METRICS)
    if lower:
        yield f"  lower values are better, as the files say: {_some(lower)}"
    timed = sum(each.span is not None for each in summary.observations)
    if not timed:
        yield "  no time stamps: the order in which environments were measured cannot be checked"
    elif timed < len(summary.observations):
        yield f"  only {timed:,} results have a time stamp: the order of measuring is checked only if all have one"
    if summary.differing:
        yield f"! These differ between environments, too, and may cause a difference: {_some(tuple(summary.differing))}"
    yield from _listed("without a result", [f"{where}: {what}" for where, what in summary.left_out])
    why = "the path does not fit the pattern" if summary.by_pattern else "the tool calls its results differently"
    yield from _listed(f"not read, because {why}", summary.unfit, _count_folders(summary.unfit[_MOST_LISTED:]))
    yield from _say_repeats(summary)
    yield _say_next(summary, metrics)


def _say_next(summary: ImportSummary, metrics: Sequence[str]) -> str:
    """The command that decides; the direction of a metric is told where only the files know it."""
    chosen = metrics[0] if metrics else ""
    metric = f" --metric {shlex.quote(chosen)}" if len(metrics) > 1 else ""
    lower = " --lower-is-better" if chosen in summary.lower and chosen not in METRICS else ""
    return f"Next: pgstrata decide {shlex.quote(summary.file)}{metric}{lower}{' --ordered' if summary.history else ''}"


def _say_repeats(summary: ImportSummary) -> Iterator[str]:
    if summary.alike:
        yield f"! {count(summary.alike, 'result')} of the same environment, cell and {summary.repeat} as another one:"
        yield "  if something else differs, name it in --pattern or --columns."
    if summary.by_order and summary.left_out:
        yield "! Blocks follow from the order of the results alone, and some are missing: a block may hold runs that"
        yield "  were not measured in one turn. Name the dimension that numbers the turns: --repeat."
    kinds = {(each.target, each.cell) for each in summary.observations}
    if not summary.asked and len(kinds) < len(summary.observations):
        yield "? Were the repeats measured in turns? The files do not say so, and there are no blocks."
        yield "  Give --repeats in-turns, one-after-another, or unknown."


def _count_folders(paths: Sequence[str]) -> str:
    """How many of the paths are in which folders; empty if none is in a folder."""
    counted = Counter(path.rpartition("/")[0] for path in paths)
    if not any(counted):
        return ""
    parts = [f"{number:,} in {folder or 'the folder itself'}" for folder, number in counted.most_common(_MOST_FOLDERS)]
    left = len(counted) - _MOST_FOLDERS
    return ", ".join((*parts, *((f"the others in {count(left, 'other folder')}",) if left > 0 else ())))


def _listed(what: str, entries: Sequence[str], others: str = "") -> Iterator[str]:
    """Lines with the first entries; `others` says where those are that are not shown."""
    if not entries:
        return
    yield f"! {len(entries):,} {what}:"
    yield from (f"  {entry}" for entry in entries[:_MOST_LISTED])
    if len(entries) > _MOST_LISTED:
        yield f"  and {len(entries) - _MOST_LISTED:,} more{f': {others}' if others else ''}"


def _some(names: Sequence[str]) -> str:
    left = len(names) - _MOST_LEVELS
    return f"{', '.join(names[:_MOST_LEVELS])}{f' and {left:,} more' if left > 0 else ''}"
