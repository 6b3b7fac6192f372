"""Values that a shell completes: studies and archives, levels, factors, workloads, questions.

A shell waits for it at each press of the tabulator key, so little is imported and little is read. Where nothing fits,
the shell completes names of files by itself.
"""

import os
import re
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import typer

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
_PIECES: Final = re.compile(r"[:=]")


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


def complete_axis(ctx: typer.Context, incomplete: str) -> list[str]:
    """Axes of the study that stands on the command line; without one, what may be an axis."""
    given = ctx.params.get("study") or next(iter(ctx.args), "")
    plan = Path(str(given)).expanduser() / _STUDY[0]
    if not given or not plan.is_file():
        return _fitting((*_CELLS, *_factors()), incomplete)
    return _fitting(_axes_of(plan), incomplete)


def complete_level(incomplete: str) -> list[str]:
    """Levels of the factor `server` that pgstrata can provide, and installations of this machine."""
    return _rest(incomplete, _fitting(_servers(), _whole(incomplete)))


def complete_assignment(incomplete: str) -> list[str]:
    """FACTOR=LEVEL,LEVEL of `try`: first the factor, then one level after the other."""
    whole = _whole(incomplete)
    factor, equals, levels = whole.partition("=")
    if not equals:
        return _fitting((f"{name}=" for name in (*_factors(), *_SETTINGS)), whole)
    given, comma, last = levels.rpartition(",")
    taken = set(given.split(","))
    found = (level for level in _fitting(_levels(factor), last) if level not in taken)
    return _rest(incomplete, (f"{factor}={given}{comma}{level}" for level in found))


def _fitting(words: Iterable[str], incomplete: str) -> list[str]:
    return [word for word in words if word.startswith(incomplete)]


def _whole(incomplete: str) -> str:
    """The word as the user sees it: bash gives `:` and `=` as words of their own, and what follows as another one."""
    words = os.environ.get("COMP_WORDS", "").split("\n")
    with suppress(KeyError, ValueError, IndexError):
        words = words[: int(os.environ["COMP_CWORD"]) + 1]
        whole = words.pop()
        while words and (_PIECES.fullmatch(whole[:1]) or _PIECES.fullmatch(words[-1])):
            whole = words.pop() + whole
        return whole
    return incomplete


def _rest(incomplete: str, found: Iterable[str]) -> list[str]:
    """What the shell has to put into the place of its own word: behind the last `:` or `=` in bash."""
    whole = _whole(incomplete)
    cut = max(whole.rfind(":"), whole.rfind("=")) + 1 if "COMP_CWORD" in os.environ else 0
    return [each[cut:] for each in found]


def _factors() -> tuple[str, ...]:
    from pgstrata.experiment.layers import LAYERS
    from pgstrata.experiment.registry import factor_keys
    from pgstrata.experiment.values import TABLE

    plain = (name for name, key in factor_keys().items() if key.kind is not TABLE)
    below = (name for layer in LAYERS.values() for name in layer.keys if "." in name and not name.endswith(".*"))
    return tuple(dict.fromkeys((*plain, *below)))


def _axes_of(plan: Path) -> tuple[str, ...]:
    """Those that can be drawn; none of a plan that cannot be read."""
    from pgstrata.errors import PgstrataError
    from pgstrata.report.projections.choice import axis_names
    from pgstrata.report.projections.design import find_projections
    from pgstrata.report.projections.model import PAIR
    from pgstrata.store.serialise import parse_plan_file

    with suppress(OSError, PgstrataError):
        return axis_names(find_projections(parse_plan_file(plan.read_bytes(), where=str(plan)).plan.experiment, PAIR))
    return ()


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
            found = [f"{here}{name}" for name in sorted(files) if name.endswith(_BUNDLE)]
        for path in _fitting(found, incomplete):
            yield path
            number += 1
        if looked > _MOST_FILES or number > _MOST_FOUND:
            return
        if depth < _DEPTH and (here == stem or files.isdisjoint(marks)):
            below = (f"{here}{name}/" for name in sorted(folders) if not name.startswith("."))
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
