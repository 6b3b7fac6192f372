"""What an import says at its end: what is in the file, what is not and why, and what to do next."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pgstrata.model.observation import Observation
from pgstrata.report.sentences.names import count

_MOST_LISTED: Final = 10
_MOST_LEVELS: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportSummary:
    """What is told of an import.

    `asked`: whether the user has said how repeats were measured; `left_out` are places with reasons, `unfit` paths that
    the pattern does not fit.
    """

    file: str
    observations: Sequence[Observation]
    compared: Sequence[str]
    cells: Sequence[str]
    differing: Sequence[str]
    asked: bool
    files: int
    logs: int
    unfit: Sequence[str]
    left_out: Sequence[tuple[str, str]]


def render_import(summary: ImportSummary) -> str:
    """Lines of text, bounded however many files there are."""
    return "".join(f"{_printable(line)}\n" for line in _lines(summary))


def _lines(summary: ImportSummary) -> Iterator[str]:
    names = tuple(dict.fromkeys(each.target for each in summary.observations))
    cells = tuple(dict.fromkeys(each.cell for each in summary.observations))
    metrics = tuple(dict.fromkeys(name for each in summary.observations for name in each.measurements))
    files = count(summary.files, "file")
    logs = f" and {count(summary.logs, 'log')} beside them" if summary.logs else ""
    yield f"{summary.file}: {count(len(summary.observations), 'result')} of {files}{logs}"
    yield f"  compared: {' and '.join(summary.compared)}: {_some(names)}"
    if summary.cells:
        yield f"  {count(len(cells), 'cell')} by {', '.join(summary.cells)}"
    yield f"  metrics: {_some(metrics)}"
    timed = sum(each.span is not None for each in summary.observations)
    if not timed:
        yield "  no time stamps: neither the order of measuring nor a drift can be seen by time"
    elif timed < len(summary.observations):
        yield f"  {timed:,} results have a time stamp; unless all have one, the order of measuring is not tested"
    if summary.differing:
        yield f"! Differs between environments, and is compared with them: {_some(tuple(summary.differing))}"
    yield from _listed("without a result", [f"{where}: {what}" for where, what in summary.left_out])
    yield from _listed("not read, because the pattern does not fit", summary.unfit)
    yield from _say_repeats(summary)
    yield f"Next: pgstrata decide {shlex.quote(summary.file)}{' --metric ' + metrics[0] if len(metrics) > 1 else ''}"


def _say_repeats(summary: ImportSummary) -> Iterator[str]:
    kinds = {(each.target, each.cell) for each in summary.observations}
    if not summary.asked and len(kinds) < len(summary.observations):
        yield "? Were the repeats measured in turns? Nothing in the files tells, so there are no blocks."
        yield "  Say --repeats in-turns, one-after-another, or unknown."


def _listed(what: str, entries: Sequence[str]) -> Iterator[str]:
    if not entries:
        return
    yield f"! {len(entries):,} {what}:"
    yield from (f"  {entry}" for entry in entries[:_MOST_LISTED])
    if len(entries) > _MOST_LISTED:
        yield f"  and {len(entries) - _MOST_LISTED:,} more"


def _printable(line: str) -> str:
    """Names of files and levels are those of strangers: nothing in them is for the terminal."""
    return "".join(sign if sign.isprintable() else "\ufffd" for sign in line)


def _some(names: Sequence[str]) -> str:
    left = len(names) - _MOST_LEVELS
    return f"{', '.join(names[:_MOST_LEVELS])}{f' and {left:,} more' if left > 0 else ''}"
