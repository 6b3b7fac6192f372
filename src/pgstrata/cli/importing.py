"""`pgstrata import`: turns options into a task, and prints a summary."""

from __future__ import annotations

from pathlib import Path

from pgstrata.app.importing import ImportTask, import_results
from pgstrata.app.new_files import name_after
from pgstrata.errors import UsageError
from pgstrata.importers.assemble import ImportQuestion
from pgstrata.importers.formats import FORMATS
from pgstrata.importers.pattern import parse_pattern
from pgstrata.importers.results import ReadingTerms
from pgstrata.model.observation import Repeats
from pgstrata.report.commands.importing import ImportSummary, render_import


def import_and_tell(
    paths: list[Path],
    *,
    format_: str,
    pattern: str | None,
    columns: str | None,
    index: str | None,
    metric: str | None,
    compare: str | None,
    repeat: str | None,
    repeats: str | None,
    output: Path | None,
) -> None:
    """Import, and print a summary."""
    if format_ not in FORMATS:
        listed = "; ".join(f"{name}: {each.title}" for name, each in FORMATS.items())
        raise UsageError(f"{format_!r} is not a format", where="--format", remedy=f"choose one of {listed}")
    compared = _names(compare)
    task = ImportTask(
        format=format_,
        paths=tuple(paths),
        pattern=parse_pattern(pattern) if pattern is not None else None,
        terms=ReadingTerms(columns=_names(columns), index=_names(index), metrics=_names(metric), compared=compared),
        question=ImportQuestion(compared=compared, repeat=repeat, repeats=_repeats_of(repeats)),
        output=output or Path(f"{name_after(paths[0]).partition('.')[0]}-observations.csv"),
    )
    done = import_results(task)
    summary = ImportSummary(
        file=str(done.output), observations=done.assembled.observations, compared=done.assembled.compared,
        cells=done.assembled.cells, differing=done.assembled.differing, asked=repeats is not None,
        by_order=task.question.repeats is Repeats.IN_TURNS and not done.assembled.repeat,
        files=done.files, logs=done.logs, unfit=done.unfit, lower=done.lower, history=done.assembled.history,
        by_pattern=pattern is not None, repeat=done.assembled.repeat, alike=done.assembled.alike,
        left_out=[(each.where, each.what) for each in done.left_out],
    )  # fmt: skip
    print(render_import(summary), end="")


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",")) if text else ()


def _repeats_of(text: str | None) -> Repeats:
    try:
        return Repeats(text) if text is not None else Repeats.UNKNOWN
    except ValueError:
        remedy = f"choose one of {', '.join(Repeats)}"
        raise UsageError(f"{text!r} is not a way to measure repeats", where="--repeats", remedy=remedy) from None
