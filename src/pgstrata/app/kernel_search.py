"""The kernels of a search along commits of Linux: built when they are needed, and named by their releases from then on.

How long the builds of a search took is kept in its folder, because its budget holds for them as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pgstrata.app.machine import open_machine
from pgstrata.app.search_questions import KernelSource
from pgstrata.errors import BootFailedError, LevelNotTakenError
from pgstrata.model import sizes
from pgstrata.model.boot import KERNEL, boot_of
from pgstrata.model.codec import parse_json
from pgstrata.model.experiment import Environment, Experiment
from pgstrata.ports.host import Clock
from pgstrata.servers.shelf import ServerSite
from pgstrata.store.failures import storage_errors
from pgstrata.store.serialise import render_json
from pgstrata.system.files import make_folders, write_atomically
from pgstrata.system.reading import read_regular
from pgstrata.vms.kernel_builds import KernelBuilder

BUILDS_FILE: Final = "builds.json"
_LONGEST: Final = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitKernels:
    """Builds the kernels of a search.

    Args:
        build: the release of a commit's kernel, by its hash, as `KernelBuilder.build`.
        folder: of the search.
        clock: measures how long builds take.
    """

    build: Callable[[str], str]
    folder: Path
    clock: Clock

    def ready(self, experiment: Experiment) -> Experiment:
        """The question with releases of kernels instead of commits; kernels that are not there are built.

        Raises:
            PgstrataError: as `KernelBuilder.build`.
        """
        return replace(experiment, environments=tuple(map(self._ready, experiment.environments)))

    def seconds(self) -> float:
        """How long the builds of this search took, those of earlier calls included."""
        return sum(self._load().values())

    def _ready(self, environment: Environment) -> Environment:
        commit = environment.layers[KERNEL]
        begun = self.clock.monotonic()
        try:
            release = self.build(commit)
        finally:
            self._keep(commit, self.clock.monotonic() - begun)
        return replace(environment, layers={**environment.layers, KERNEL: release})

    def _keep(self, commit: str, seconds: float) -> None:
        known = self._load()
        with storage_errors(self.folder):
            spent = {**known, commit: round(known.get(commit, 0.0) + seconds, 1)}
            make_folders(self.folder)
            write_atomically(self.folder / BUILDS_FILE, render_json(spent, indent=2))

    def _load(self) -> Mapping[str, float]:
        """Empty where there is no such list, or a damaged one: it only adds to what counts for the budget."""
        try:
            found = parse_json(read_regular(self.folder / BUILDS_FILE, most=sizes.SKIPPED_FILE))
        except (OSError, ValueError):
            return {}
        items = found.items() if isinstance(found, dict) else ()
        return {str(name): float(value) for name, value in items if _is_time(value)}


def _is_time(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _LONGEST


def builds_of(source: KernelSource, tell: Callable[[str], None]) -> Callable[[str], str]:
    """A function that builds kernels of commits on this machine; `tell` is called with what takes a while."""

    def build(commit: str) -> str:
        with open_machine(tell) as machine:
            site = ServerSite(here=machine.here, host=machine.host, cache=machine.places.cache, note=tell)
            return KernelBuilder(site=site, repository=source.repository, recipe=source.recipe).build(commit)

    return build


def blame_level(error: BootFailedError, experiment: Experiment) -> LevelNotTakenError | None:
    """The error of a level whose kernel does not come up; None where the fault is not known to be that of the second.

    Args:
        error: of the study of a step.
        experiment: of the step, whose kernels have their releases.
    """
    first, second = (boot_of(each).text for each in experiment.environments)
    if not error.asked or error.asked != second or first == second:
        return None
    return LevelNotTakenError(error.what, where=error.where, remedy=error.remedy, details=error.details)
