"""Values that a shell completes: studies and archives, levels, factors, workloads, questions.

A shell waits for it at each press of the tabulator key, so little is imported and little is read. Where nothing fits,
the shell completes names of files by itself.

Shells put a word into the command line unquoted, and zsh even evaluates it. So words with special characters, such as a
folder `x;reboot`, are not offered: the shell's own completion quotes them.
"""

import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

if TYPE_CHECKING:
    from pgstrata.model.experiment import Experiment

_PLAIN: Final = re.compile(r"[\w./:=,@%+-]+")
"""Words without characters that are special to a shell."""
_LARGEST_PLAN: Final = 16 << 20
"""Bytes of a plan that is read; few are larger than some hundred kilobytes."""
_DEPTH: Final = 2
_MOST_FILES: Final = 2_000
_MOST_FOUND: Final = 200
_STUDY: Final = ("plan.json", "merged.json")
_ARCHIVE: Final = ("archive.sqlite",)
_BUNDLE: Final = ".tar.xz"
_INSTALLED: Final = ("/usr/lib/postgresql/*/bin/postgres", "/usr/pgsql-*/bin/postgres")
_LEVELS: Final = {
    "checksums": ("off", "on"),
    "pages": ("4kB", "2MB", "1GB"),
    "thp": ("never", "madvise", "always"),
    "filesystem": ("ext4", "xfs", "btrfs"),
}
"""Levels of factors that are not words of a list in the registry."""
_SETTINGS: Final = (
    "shared_buffers", "work_mem", "wal_compression", "synchronous_commit", "max_wal_size", "checkpoint_timeout",
    "effective_io_concurrency", "random_page_cost", "jit", "huge_pages",
)  # fmt: skip
"""Settings that are compared often; `try` takes every other one, too."""
_CELLS: Final = ("clients", "scale")
"""Axes that are no factors."""
_BREAKS: Final = (":", "=")
_BEFORE: Final = "_PGSTRATA_BEFORE"
"""The part of the last word that bash has broken off, as `join_words` leaves it in the environment."""


def join_words() -> None:
    """Put the words of the command line together again, which bash breaks at `:` and `=`.

    The last one stays what follows its last break, because that is what bash puts a completion in the place of.
    """
    joined: list[str] = []
    with suppress(KeyError, ValueError):
        for word in os.environ["COMP_WORDS"].split("\n")[: int(os.environ["COMP_CWORD"]) + 1]:
            if joined and (word.startswith(_BREAKS) or joined[-1].endswith(_BREAKS)):
                joined[-1] += word
            else:
                joined.append(word)
        *before, last = joined
        if last.startswith("-") and "=" in last:
            option, _, last = last.partition("=")
            before.append(option)
        cut = max(map(last.rfind, _BREAKS)) + 1
        words = "\n".join((*before, last[cut:]))
        os.environ |= {"COMP_WORDS": words, "COMP_CWORD": str(len(before)), _BEFORE: last[:cut]}


def complete_study(incomplete: str) -> list[str]:
    """Folders of studies."""
    return list(_find(incomplete, _STUDY))


def complete_shown(incomplete: str) -> list[str]:
    """Folders of studies, and bundles."""
    return list(_find(incomplete, _STUDY, bundles=True))


def complete_archive(incomplete: str) -> list[str]:
    """Folders of archives."""
    return list(_find(incomplete, _ARCHIVE))


def complete_any(incomplete: str) -> list[str]:
    """Folders of studies and archives, and bundles."""
    return list(_find(incomplete, (*_STUDY, *_ARCHIVE), bundles=True))


def complete_question(incomplete: str) -> list[str]:
    """Questions of `init`."""
    from pgstrata.app.init import QUESTIONS

    return _fitting(QUESTIONS, incomplete)


def complete_workload(incomplete: str) -> list[str]:
    """Names of built-in workloads."""
    from pgstrata import workloads

    folders = (file.parent.name for place in workloads.__path__ for file in Path(place).glob("*/workload.toml"))
    return _fitting(sorted(folders), incomplete)


def complete_metric(incomplete: str) -> list[str]:
    """Names of metrics."""
    from pgstrata.model.metrics import METRICS

    return _fitting(METRICS, incomplete)


def complete_factor(incomplete: str) -> list[str]:
    """Names of factors."""
    return _fitting(_factors(), incomplete)


def complete_words(*words: str) -> Callable[[str], list[str]]:
    """One of these words."""
    return lambda incomplete: _fitting(words, incomplete)


def complete_axis(ctx: typer.Context, incomplete: str) -> list[str]:
    """Axes of the study that stands on the command line; without one, what may be an axis."""
    plan = _plan_on_line(ctx)
    return _fitting((*_CELLS, *_factors()) if plan is None else _axes_of(plan), incomplete)


def complete_key(ctx: typer.Context, incomplete: str) -> list[str]:
    """What comparisons of the study on the command line differ in; without one, what they may differ in."""
    plan = _plan_on_line(ctx)
    return _fitting(("workload", *_CELLS, *_factors()) if plan is None else _keys_of(plan), incomplete)


def complete_filter(ctx: typer.Context, incomplete: str) -> list[str]:
    """KEY=LEVEL,LEVEL with keys and levels of the study on the command line; without one, as `try` takes them."""
    plan = _plan_on_line(ctx)
    if plan is None:
        return complete_assignment(incomplete)
    keys = _keys_of(plan)
    return _assign(incomplete, keys, lambda key: keys.get(key, ()))


def complete_sort(incomplete: str) -> list[str]:
    """What a list of comparisons is sorted by."""
    from pgstrata.report.answer.keys import SortKey

    return _fitting(SortKey, incomplete)


def complete_environment(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of environments of the study on the command line."""
    experiment = _read_experiment(_plan_on_line(ctx))
    return [] if experiment is None else _fitting((each.name for each in experiment.environments), incomplete)


def complete_cell(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of cells of the study on the command line."""
    experiment = _read_experiment(_plan_on_line(ctx))
    return [] if experiment is None else _fitting((cell.identity for cell in experiment.cells), incomplete)


def complete_level(incomplete: str) -> list[str]:
    """Levels of the factor `server` that pgstrata can provide, and installations of this machine."""
    return _rest(_fitting(_servers(), _whole(incomplete)))


def complete_assignment(incomplete: str) -> list[str]:
    """FACTOR=LEVEL,LEVEL of `try`: first the factor, then one level after the other."""
    return _assign(incomplete, (*_factors(), *_SETTINGS), _levels)


def _assign(incomplete: str, keys: Iterable[str], levels: Callable[[str], Iterable[str]]) -> list[str]:
    """A key and =, or behind it one more of its levels.

    If only one key fits, its levels are offered at once: bash and zsh put a space behind the only word that is offered.
    """
    key, equals, written = _whole(incomplete).partition("=")
    if not equals:
        fitting = _fitting(keys, incomplete)
        known = [f"{name}={level}" for name in fitting for level in levels(name)] if len(fitting) == 1 else []
        return _fitting(known, incomplete) or [f"{name}=" for name in fitting]
    given, comma, last = written.rpartition(",")
    taken = set(given.split(","))
    found = (level for level in _fitting(levels(key), last) if level not in taken)
    return _rest(f"{key}={given}{comma}{level}" for level in found)


def _fitting(words: Iterable[str], incomplete: str) -> list[str]:
    return [word for word in words if word.startswith(incomplete) and _PLAIN.fullmatch(word)]


def _whole(incomplete: str) -> str:
    """The word as the user sees it."""
    return os.environ.get(_BEFORE, "") + incomplete


def _rest(found: Iterable[str]) -> list[str]:
    """What the shell has to put into the place of its own word."""
    cut = len(os.environ.get(_BEFORE, ""))
    return [each[cut:] for each in found]


def _factors() -> tuple[str, ...]:
    from pgstrata.experiment.layers import LAYERS
    from pgstrata.experiment.registry import factor_keys
    from pgstrata.experiment.values import TABLE

    plain = (name for name, key in factor_keys().items() if key.kind is not TABLE)
    below = (name for layer in LAYERS.values() for name in layer.keys if "." in name and not name.endswith(".*"))
    return tuple(dict.fromkeys((*plain, *below)))


def _plan_on_line(ctx: typer.Context) -> Path | None:
    """The plan of the study that stands on the command line; None where there is no study."""
    given = ctx.params.get("study") or ctx.params.get("archive") or next(iter(ctx.args), "")
    with suppress(OSError, RuntimeError):  # it may not be looked at, or names no user
        plan = Path(str(given)).expanduser() / _STUDY[0]
        return plan if given and plan.is_file() else None
    return None


def _read_experiment(plan: Path | None) -> "Experiment | None":
    """That of a plan; None where it cannot be read."""
    if plan is None:
        return None
    from pgstrata.errors import PgstrataError
    from pgstrata.store.serialise import parse_plan_file
    from pgstrata.system.reading import read_regular

    with suppress(OSError, PgstrataError):
        return parse_plan_file(read_regular(plan, most=_LARGEST_PLAN), where=str(plan)).plan.experiment
    return None


def _axes_of(plan: Path) -> tuple[str, ...]:
    """Those that can be drawn; none of a plan that cannot be read."""
    from pgstrata.report.projections.choice import axis_names
    from pgstrata.report.projections.design import find_projections
    from pgstrata.report.projections.model import PAIR

    experiment = _read_experiment(plan)
    return () if experiment is None else axis_names(find_projections(experiment, PAIR))


def _keys_of(plan: Path) -> dict[str, tuple[str, ...]]:
    """What comparisons differ in, by the name that users know, with its levels; none of a plan that cannot be read."""
    from pgstrata.report.answer.keys import keys_of, levels_of
    from pgstrata.report.sentences.names import name_factor

    experiment = _read_experiment(plan)
    return {} if experiment is None else {name_factor(key): levels_of(key, experiment) for key in keys_of(experiment)}


def _levels(factor: str) -> tuple[str, ...]:
    if factor == "server":
        return _servers()
    if factor in _LEVELS:
        return _LEVELS[factor]
    from pgstrata.experiment.registry import factor_keys

    key = factor_keys().get(factor)
    return () if key is None else tuple(key.kind.schema.get("enum", ()))


def _servers() -> tuple[str, ...]:
    from pgstrata.experiment.keys import CATALOGUE_MAJORS, MAVEN_MAJORS

    installed = (path for pattern in _INSTALLED for path in Path("/").glob(pattern.removeprefix("/")))
    return (
        *CATALOGUE_MAJORS,
        "embedded",
        *(f"maven:{major}" for major in MAVEN_MAJORS),
        *sorted(f"prefix:{path.parent.parent}" for path in installed),
    )


def _find(incomplete: str, marks: tuple[str, ...], *, bundles: bool = False) -> Iterator[str]:
    """Paths that begin so and are folders with one of these files, or bundles; up to `_DEPTH` folders below."""
    stem = incomplete[: incomplete.rfind("/") + 1]
    waiting, looked, number = deque([(stem, 0)]), 0, 0
    while waiting:
        here, depth = waiting.popleft()
        files, folders = _look_into(here)
        looked += len(files) + len(folders)
        found = [here.rstrip("/")] if here != stem and not files.isdisjoint(marks) else []
        if bundles and not found:
            found = [f"{here}{name}" for name in sorted(files) if name.endswith(_BUNDLE) and not name.startswith("-")]
        for path in _fitting(found, incomplete):
            yield path
            number += 1
        if looked > _MOST_FILES or number > _MOST_FOUND:
            return
        if depth < _DEPTH and (here == stem or files.isdisjoint(marks)):
            below = (f"{here}{name}/" for name in sorted(folders) if not name.startswith((".", "-")))
            waiting.extend((path, depth + 1) for path in below if path.startswith(incomplete) or depth)


def _look_into(folder: str) -> tuple[set[str], set[str]]:
    """Names of files and of folders, a bounded number; none where it cannot be read."""
    files, folders = set[str](), set[str]()
    with suppress(OSError), os.scandir(folder or ".") as entries:
        for number, entry in enumerate(entries):
            if number > _MOST_FILES:
                break
            (folders if entry.is_dir(follow_symlinks=False) else files).add(entry.name)
    return files, folders
