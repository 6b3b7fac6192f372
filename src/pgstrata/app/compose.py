"""`pgstrata try`: write an experiment file, never over somebody's own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pgstrata.app.places import capacity_here, expand_home
from pgstrata.app.question import load_plan
from pgstrata.errors import PgstrataError, UsageError
from pgstrata.experiment.compose import Composed, Wishes, compose_try
from pgstrata.experiment.servers import mask_conninfo
from pgstrata.model import sizes
from pgstrata.model.plan import Plan
from pgstrata.system.files import create, remove_file, write_error
from pgstrata.system.reading import read_regular

_MOST_FILES: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ComposedFile:
    """The file that was written (or was there with the same text), and its plan."""

    file: Path
    plan: Plan
    remarks: tuple[str, ...]


def compose_experiment(assignments: Sequence[str], wishes: Wishes, output: Path | None) -> ComposedFile:
    """Write the experiment file of a line of assignments; passwords stay out of it, and in the plan."""
    composed = compose_here(assignments, wishes)
    file = output or _free_name(assignments, composed.text)
    write_kept(file, composed.text)
    try:
        plan = load_plan(file, conninfo=composed.conninfo)
    except PgstrataError:
        # a question that cannot be asked leaves no file behind
        remove_file(file)
        raise
    return ComposedFile(file=file, plan=plan, remarks=composed.remarks)


def compose_here(assignments: Sequence[str], wishes: Wishes) -> Composed:
    """The text of the file, with this machine's CPUs and whole paths."""
    cpus = capacity_here().cpus
    return compose_try(assignments, wishes, cpus=cpus, resolve_path=lambda path: str(expand_home(path).absolute()))


def _free_name(assignments: Sequence[str], text: str) -> Path:
    """try-WORDS.toml; the same question finds the same file again, another one gets a number."""
    masked = [mask_conninfo(assignment) for assignment in assignments]
    stem = "try-" + re.sub(r"[^A-Za-z0-9]+", "-", " ".join(masked)).strip("-").lower()[:40]
    for number in range(1, _MOST_FILES):
        file = Path(f"{stem}.toml" if number == 1 else f"{stem}-{number}.toml")
        if not file.exists() or _text_of(file) == text:
            return file
    raise UsageError("there are a thousand files of that name", where=f"{stem}.toml", remedy="name one with -o FILE")


def _text_of(file: Path) -> str | None:
    try:
        return read_regular(file, most=sizes.EXPERIMENT_FILE).decode()
    except (OSError, UnicodeDecodeError):
        return None


def write_kept(file: Path, text: str) -> None:
    """Write a text that is perhaps there already; UsageError, DiskFullError where it cannot be."""
    if file.exists() and _text_of(file) == text:
        return
    try:
        create(file, text.encode())
    except FileExistsError:
        raise UsageError(
            "the file exists already and is not overwritten", where=str(file), remedy="name another one"
        ) from None
    except OSError as error:
        raise write_error(
            "the file cannot be written", error, where=file, remedy="name another place", kind=UsageError
        ) from None
