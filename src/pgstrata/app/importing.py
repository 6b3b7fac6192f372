"""Imports folders and files of other tools' results into one file of observations."""

from __future__ import annotations

import errno
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Final

from pgstrata.app.new_files import write_new
from pgstrata.errors import UsageError
from pgstrata.importers.assemble import Assembled, ImportQuestion, assemble
from pgstrata.importers.content import decode_text, describe_binary
from pgstrata.importers.formats import FORMATS
from pgstrata.importers.logs import LOG_NAME, LOG_PREFIX, read_logs
from pgstrata.importers.pattern import STARTED, PathPattern
from pgstrata.importers.results import LeftOut, Placed, ReadingTerms, Result, is_precise, refuse_many, shorten_reason
from pgstrata.model import sizes
from pgstrata.sources.moments import parse_moment_in_name
from pgstrata.sources.table import MOST_ROWS
from pgstrata.sources.tidy import render_observations
from pgstrata.system.reading import open_regular, read_regular
from pgstrata.system.ways import as_owner_inside
from pgstrata.units import render_count

_MOST_FILES: Final = 100_000
"""Files and folders below one that is imported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportTask:
    """What is to be imported, and the options of the user."""

    format: str
    paths: tuple[Path, ...]
    pattern: PathPattern | None
    terms: ReadingTerms
    question: ImportQuestion
    output: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """The outcome of an import: the file, its observations, and everything that was left out.

    `unfit` are paths that do not fit the pattern, or the names that the tool gives its results. `left_out` are files
    and lines that gave no result. `lower` are metrics of which the files say that lower values are better.
    """

    output: Path
    assembled: Assembled
    files: int
    logs: int
    unfit: tuple[str, ...]
    left_out: tuple[LeftOut, ...]
    lower: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """A file, and the path that is compared with the pattern; `named` if the user named the file itself."""

    path: Path
    relative: str
    named: bool = False


@dataclass(slots=True)
class _Gathered:
    """What has been read so far; `size` in bytes."""

    placed: list[Placed] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    lower: set[str] = field(default_factory=set)
    seen: dict[object, str] = field(default_factory=dict)
    """Sources by the whole result."""
    refused: UsageError | None = None
    """The first error of a file that the user did not name; it is raised if no file has results."""
    suggested: str = ""
    history: bool = False
    size: int = 0


def import_results(task: ImportTask) -> Imported:
    """Read all files and write the observations.

    Raises:
        UsageError: a path does not exist, there is no usable result, or it is not clear what is compared.
    """
    kind = FORMATS[task.format]
    walks = [_walk(path, several=len(task.paths) > 1) for path in task.paths]
    found = [each for files, _ in walks for each in files]
    chosen, others = _choose(found, task.pattern, kind.ending)
    logs, unfit = _find_logs(chosen, others) if kind.has_logs else ({}, [each.relative for each in others])
    gathered = _Gathered(left_out=[each for _, passed in walks for each in passed])
    for each, levels in chosen:
        _gather(gathered, each, levels, logs.get(each.relative, ()), task)
    if not gathered.placed:
        _refuse_nothing(task, chosen, unfit, gathered)
    assembled = assemble(gathered.placed, task.question, gathered.suggested, history=gathered.history)
    rows = sum(len(each.measurements) for each in assembled.observations)
    if rows > MOST_ROWS:
        raise UsageError(
            f"there are {rows:,} measurements, and a file can have at most {MOST_ROWS:,}",
            where=str(task.output),
            remedy="import fewer metrics, such as --metric tps, or fewer folders at a time",
        )
    text = render_observations(assembled.observations, task.question.repeats)
    write_new(task.output, text.encode("utf-8", "replace"))
    return Imported(
        output=task.output, assembled=assembled, files=len(chosen), logs=sum(map(len, logs.values())),
        unfit=tuple(unfit), left_out=tuple(gathered.left_out), lower=frozenset(gathered.lower),
    )  # fmt: skip


def _gather(
    gathered: _Gathered, found: _Found, levels: Mapping[str, str], logs: Sequence[_Found], task: ImportTask
) -> None:
    """Add the results of a file, and the lines that gave no result."""
    content = _read(found, gathered)
    if content is None:
        return
    gathered.size += len(content)
    _refuse_size(gathered.size)
    if what := describe_binary(content):
        gathered.left_out.append(LeftOut(file=found.relative, line=0, what=what))
        return
    try:
        contents = FORMATS[task.format].read(decode_text(content), task.terms)
    except UsageError as error:
        error.where = f"{found.path}: {error.where}" if error.where else str(found.path)
        if found.named:
            raise
        # only the first is kept: each one keeps all that was read of its file
        gathered.refused = gathered.refused or error
        gathered.left_out.append(LeftOut(file=found.relative, line=0, what=shorten_reason(error.what)))
        return
    gathered.suggested = gathered.suggested or contents.compared
    gathered.history |= contents.history
    gathered.lower |= contents.lower
    gathered.left_out += [
        LeftOut(file=found.relative, line=line, what=shorten_reason(what)) for line, what in contents.unusable
    ]
    results, size = _with_logs(contents.results, logs, gathered.size)
    gathered.size += size
    started = _time_of(levels, found)
    for result in results:
        _add(gathered, _place(result, found.relative, levels, started, task), task.terms.metrics)
    refuse_many(len(gathered.placed) + len(gathered.left_out))


def _add(gathered: _Gathered, placed: Placed, wanted: Sequence[str]) -> None:
    """Add a result; what has no ratio to others, or none of the metrics that are wanted, is left out and named."""
    measured = placed.result.measurements
    usable = {name: value for name, value in measured.items() if value > 0}
    source = gathered.seen.setdefault((*sorted(measured.items()), *sorted(placed.dimensions.items())), placed.source)
    if source != placed.source and any(map(is_precise, usable.values())):
        what = f"it is the same result as in {source}"
        gathered.left_out.append(LeftOut(file=placed.source, line=placed.result.line, what=what))
        return
    if usable:
        gathered.placed.append(replace(placed, result=replace(placed.result, measurements=usable)))
    if len(usable) < len(measured):
        lacking = ", ".join(name for name in measured if name not in usable)
        what = f"{lacking}: the value is not above zero, and differences are ratios"
    elif not measured:
        what = f"no value of {', '.join(wanted)}" if wanted else "no value"
    else:
        return
    gathered.left_out.append(LeftOut(file=placed.source, line=placed.result.line, what=what))


# ------------------------------------------------------------------------------------------------ files


def _walk(root: Path, *, several: bool) -> tuple[list[_Found], list[LeftOut]]:
    """Files below a folder, sorted by name, without following links to folders; or the file itself.

    Also the folders in which nothing was looked for, with the reason. If there are several folders, paths begin with
    the folder's own name.
    """
    if not root.exists():
        raise UsageError(
            "there is no such file or folder", where=str(root), remedy="name a folder of results, or files"
        )
    if not root.is_dir():
        return [_Found(path=root, relative=root.name, named=True)], []
    try:
        files, passed = _list_below(root)
    except OSError as error:
        remedy = "check its owner and permissions"
        raise UsageError(f"the folder cannot be read: {error.strerror}", where=str(root), remedy=remedy) from None
    base = root.parent if several else root
    return (
        [_Found(path=path, relative=_relative(path, base)) for path in files],
        [LeftOut(file=_relative(path, base), line=0, what=why) for path, why in passed],
    )


def _relative(path: Path, base: Path) -> str:
    return os.fsencode(path.relative_to(base).as_posix()).decode("utf-8", "replace")


@as_owner_inside
def _list_below(root: Path) -> tuple[list[Path], list[tuple[Path, str]]]:
    """Files below a folder, those in a folder before those in folders in it; and folders that were passed over."""
    found: list[Path] = []
    passed: list[tuple[Path, str]] = []
    folders, left = [os.fspath(root)], _MOST_FILES
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(folder) as listing:
                entries = sorted(islice(listing, left + 1), key=lambda entry: entry.name)
        except PermissionError:
            passed.append((Path(folder), "the folder may not be entered"))
            continue
        if not entries:
            passed.append((Path(folder), "the folder is empty"))
        left -= len(entries)
        if left < 0:
            what = f"there are more than {_MOST_FILES:,} files and folders"
            raise UsageError(what, where=str(root), remedy="import one of its folders at a time")
        below: list[str] = []
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                below.append(entry.path)
            elif entry.is_symlink() and _leads_to_folder(entry):
                passed.append((Path(entry.path), "a link to a folder is not followed"))
            else:
                found.append(Path(entry.path))
        folders += reversed(below)
    return found, passed


def _leads_to_folder(entry: os.DirEntry[str]) -> bool:
    """Whether a link does; False also for links that lead to each other."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def _choose(
    found: Sequence[_Found], pattern: PathPattern | None, ending: str
) -> tuple[list[tuple[_Found, Mapping[str, str]]], list[_Found]]:
    """Files that fit the pattern, with their levels; and the other files.

    Without a pattern, files below a folder are those whose names have the ending of the format, if some do.
    """
    ends = pattern is None and any(each.relative.endswith(ending) for each in found)
    chosen, others = [], []
    for each in found:
        levels = {} if pattern is None else pattern.match(each.relative)
        if levels is None or (ends and not each.named and not each.relative.endswith(ending)):
            others.append(each)
        else:
            chosen.append((each, levels))
    return chosen, others


def _find_logs(
    chosen: Sequence[tuple[_Found, Mapping[str, str]]], others: Sequence[_Found]
) -> tuple[dict[str, tuple[_Found, ...]], list[str]]:
    """pgbench's logs by the file of the result; and the files that are left.

    The name of the result is their prefix. A log with the prefix that pgbench itself gives belongs to the only result
    in its folder. If a result has logs of several processes, it is not known which of its runs they belong to, and none
    is used.
    """
    results = {each.relative.rpartition(".")[0] or each.relative: each.relative for each, _ in chosen}
    for folder, names in _by_folder(each.relative for each, _ in chosen).items():
        if len(names) == 1:
            results.setdefault(f"{folder}{LOG_PREFIX}", names[0])
    by_process: dict[str, dict[str, list[_Found]]] = defaultdict(lambda: defaultdict(list))
    unfit = []
    for each in others:
        name = LOG_NAME.fullmatch(each.relative)
        if name is not None and name["prefix"] in results:
            by_process[results[name["prefix"]]][name["pid"]].append(each)
        else:
            unfit.append(each.relative)
    logs: dict[str, tuple[_Found, ...]] = {}
    for result, processes in by_process.items():
        if len(processes) == 1:
            logs[result] = tuple(next(iter(processes.values())))
        else:
            unfit += [each.relative for files in processes.values() for each in files]
    return logs, unfit


def _by_folder(names: Iterable[str]) -> Mapping[str, list[str]]:
    """File names by folder. A folder ends with `/`; it is empty for files without one."""
    found: dict[str, list[str]] = defaultdict(list)
    for name in names:
        folder, slash, _ = name.rpartition("/")
        found[f"{folder}{slash}"].append(name)
    return found


def _read(found: _Found, gathered: _Gathered) -> bytes | None:
    """The content; None if it cannot be read, which is noted, or refused if the user named the file."""
    try:
        return read_regular(found.path, most=sizes.FOREIGN_FILE)
    except OSError as error:
        what = f"the file cannot be read: {error.strerror}"
        if found.named:
            remedy = "split the file" if error.errno == errno.EFBIG else "check its owner and permissions"
            raise UsageError(what, where=str(found.path), remedy=remedy) from None
        gathered.left_out.append(LeftOut(file=found.relative, line=0, what=what))
        return None


def _refuse_size(total: int) -> None:
    if total > sizes.FOREIGN_FILES:
        remedy = "import fewer folders at a time, or give a narrower --pattern"
        raise UsageError(f"the files have more than {sizes.FOREIGN_FILES >> 20:,} MiB in total", remedy=remedy)


def _with_logs(results: tuple[Result, ...], logs: Sequence[_Found], before: int) -> tuple[tuple[Result, ...], int]:
    """A single result, completed by its start and the opening of its throughput from its logs; and the logs' bytes.

    `before` are the bytes of all other files.
    """
    if len(results) != 1 or not logs:
        return results, 0
    texts, whole, size = [], True, 0
    for each in logs:
        try:
            with open_regular(each.path) as stream:
                content = stream.read(sizes.FOREIGN_LOG + 1)
        except OSError:
            return results, size
        size += len(content)
        _refuse_size(before + size)
        whole = whole and len(content) <= sizes.FOREIGN_LOG
        texts.append(content.decode("ascii", "replace"))
    logged = read_logs(texts, whole=whole)
    if logged is None:
        return results, size
    (result,) = results
    opening = logged.opening if logged.opening is not None else result.opening
    return (replace(result, started=logged.started, opening=opening),), size


def _time_of(levels: Mapping[str, str], found: _Found) -> datetime | None:
    """The time that the path has; None if the pattern has no field for it."""
    text = levels.get(STARTED)
    if text is None:
        return None
    moment = parse_moment_in_name(text)
    if moment is None:
        raise UsageError(
            f"{{{STARTED}}} reads {text!r} in {found.relative}, which is not a time",
            where="--pattern",
            remedy=f"write * in the place of {{{STARTED}}}; times are such as 20260131-1705, 2026-01-31_17-05-00 or "
            "seconds since 1970",
        )
    return moment


def _place(
    result: Result, source: str, levels: Mapping[str, str], started: datetime | None, task: ImportTask
) -> Placed:  # fmt: skip
    """A result with all its dimensions; levels of the path take precedence over those of the file.

    The time of the path counts if the file has none of its own.
    """
    wanted = task.terms.metrics
    measured = {name: value for name, value in result.measurements.items() if not wanted or name in wanted}
    known = {name: level for name, level in levels.items() if name != STARTED}
    named = frozenset({*known, *task.terms.columns, *task.terms.index, *task.question.compared})
    return Placed(
        result=replace(result, measurements=measured, started=result.started or started),
        source=source,
        dimensions={**known, **{name: level for name, level in result.said.items() if name not in known}},
        named=named,
    )


def _refuse_nothing(task: ImportTask, chosen: Sequence[object], unfit: Sequence[str], gathered: _Gathered) -> None:
    if gathered.refused is not None:
        raise gathered.refused
    where = ", ".join(map(str, task.paths[:3]))
    passed = tuple(f"{each.where}: {each.what}" for each in gathered.left_out[:5])
    if not chosen:
        what = f"none of {len(unfit):,} files fits the pattern" if unfit else "there are no files"
        raise UsageError(
            what, where=where, details=(*(f"the first of them: {each}" for each in unfit[:1]), *passed),
            remedy="compare the pattern with the paths of files below the folder",
        )  # fmt: skip
    raise UsageError(
        f"there is no result in {render_count(len(chosen), 'file')}", where=where, details=passed,
        remedy=f"--format {task.format} reads {FORMATS[task.format].title}: choose another format, or another pattern",
    )  # fmt: skip
