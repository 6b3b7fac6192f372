"""Questions of searches: along levels of a factor, commits of PostgreSQL, or commits of Linux."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, overload

from pgstrata.app.places import capacity_here, find_machine_places
from pgstrata.app.question import complete_by_hosts, parse_text, read_experiment
from pgstrata.errors import UsageError
from pgstrata.hosts.local import LocalHost
from pgstrata.model import sizes
from pgstrata.model.bisect import Commit
from pgstrata.model.boot import KERNEL
from pgstrata.model.experiment import Environment, Experiment, HostKind, Level, ServerKind, ServerSpec
from pgstrata.plan.bisection import levels_along
from pgstrata.plan.identity import identify
from pgstrata.servers.commits import Repository, open_repository
from pgstrata.system import reading
from pgstrata.system.users import acting_as
from pgstrata.vms.image import find_image
from pgstrata.vms.kernel_builds import KernelRecipe
from pgstrata.workloads import builtin_workloads

_HASH: Final = 12
_CONFIG: Final = ".config"
_USUAL_BUILD: Final = "make -j$(nproc) bzImage modules"
"""The shell counts the CPUs: the same command is the same build on a machine that has got more of them."""
_LINUX: Final = "Linux"


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelSource:
    """The repository of kernels, and how each commit is built."""

    repository: Repository
    recipe: KernelRecipe


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuestion:
    """What is searched: levels in their order, at which all else is as in the baseline.

    `experiment` is complete. Where levels are commits, `commits` has one for each level; where they are commits of
    Linux, `kernels` builds them, and the level of an environment is a commit until then.
    """

    experiment: Experiment
    factor: str
    levels: Sequence[Environment]
    commits: tuple[Commit, ...] = ()
    kernels: KernelSource | None = None

    def name(self, place: int) -> str:
        """A level as people call it."""
        if self.commits:
            return short_hash(self.commits[place])
        levels = self.levels[place].levels
        return next((level.value for level in levels if level.factor == self.factor), self.levels[place].name)

    @property
    def identity(self) -> str:
        """A hash of everything that fixes the search. Of Linux, the ends say which commits lie between them."""
        levels = self.levels if self.kernels is None else (self.levels[0], self.levels[-1])
        whole = identify(replace(self.experiment, environments=tuple(levels), factors=(self.factor,)), ())
        if self.kernels is None:
            return whole
        recipe = self.kernels.recipe
        return hashlib.sha256(b"\0".join((whole.encode(), recipe.command.encode(), recipe.config))).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelLevels(Sequence[Environment]):
    """The environments of commits of Linux, each made when it is asked for: a range may have twenty thousand."""

    base: Environment
    commits: tuple[Commit, ...]

    def __len__(self) -> int:
        return len(self.commits)

    @overload
    def __getitem__(self, place: int) -> Environment: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Environment]: ...

    def __getitem__(self, place: int | slice) -> Environment | Sequence[Environment]:
        if isinstance(place, slice):
            return replace(self, commits=self.commits[place])
        commit = self.commits[place]
        level = Level(factor=KERNEL, value=short_hash(commit))
        return replace(
            self.base,
            name=f"commit-{level.value}",
            levels=(level,),
            layers={**self.base.layers, KERNEL: commit.hash},
            control=None,
        )


def short_hash(commit: Commit) -> str:
    """A commit as people call it."""
    return commit.hash[:_HASH]


def ask_factor(file: Path, factor: str | None) -> SearchQuestion:
    """The search along a factor of an experiment file; None: its only one.

    Raises:
        UsageError: there is no such factor, it has fewer than three levels, or the file is wrong.
    """
    capacity, workloads = capacity_here(), builtin_workloads()
    parsed = parse_text(read_experiment(file), str(file), workloads, capacity, folder=file.parent)
    experiment, _ = complete_by_hosts(parsed, capacity, workloads)
    key, levels = levels_along(experiment, factor)
    return SearchQuestion(experiment=experiment, factor=key, levels=levels)


def ask_commits(file: Path, text: str, repository: Path) -> SearchQuestion:
    """The search along the first-parent commits of a range of PostgreSQL, in the baseline of an experiment file.

    Raises:
        UsageError: the file is wrong, or there is no such range.
    """
    capacity, workloads = capacity_here(), builtin_workloads()
    parsed = parse_text(read_experiment(file), str(file), workloads, capacity, folder=file.parent, lone=True)
    base = parsed.environment(parsed.baseline)
    if base.server.kind is ServerKind.DSN:
        raise UsageError(
            "a running server (dsn:) cannot be built from commits",
            where=str(file),
            remedy="take the server out: --git says what is built",
        )
    folder = os.path.normpath(repository.absolute())
    commits = open_repository(LocalHost(), folder).range(text)
    levels = tuple(_of_commit(base, folder, commit) for commit in commits)
    whole = replace(parsed, environments=levels, baseline=levels[0].name, factors=("server",))
    experiment, _ = complete_by_hosts(whole, capacity, workloads)
    return SearchQuestion(experiment=experiment, factor="server", levels=experiment.environments, commits=commits)


def _of_commit(base: Environment, repository: str, commit: Commit) -> Environment:
    short = short_hash(commit)
    how = base.server.build if base.server.kind is ServerKind.BUILD else ()
    server = ServerSpec(kind=ServerKind.BUILD, value=f"{repository}@{commit.hash}", build=how)
    level = Level(factor="server", value=short)
    return replace(base, name=f"commit-{short}", levels=(level,), server=server, control=None)


def ask_kernels(file: Path, text: str, repository: Path, *, build: str | None, config: Path | None) -> SearchQuestion:
    """The search along the first-parent commits of a range of Linux, in the baseline of an experiment file.

    Args:
        file: the experiment file; its baseline runs in a virtual machine.
        text: GOOD..BAD.
        repository: a clone of Linux; it is only read.
        build: the build command; None for the image and the modules, with all CPUs.
        config: a .config; None for that of the work tree.

    Raises:
        UsageError: the file is wrong, there is no such range, no configuration, or no virtual machine.
        HostNotFitError: the image of the virtual machine is missing.
    """
    capacity, workloads = capacity_here(), builtin_workloads()
    parsed = parse_text(read_experiment(file), str(file), workloads, capacity, folder=file.parent, lone=True)
    base = parsed.environment(parsed.baseline)
    if base.host.kind is not HostKind.VM:
        raise UsageError(
            f"kernels of commits are booted in virtual machines only, and not on {base.host.named}",
            where=str(file),
            remedy='write host = "vm:IMAGE" under [common], and make the image with `pgstrata vm build IMAGE`',
        )
    opened = open_repository(LocalHost(), os.path.normpath(repository.absolute()), _LINUX)
    recipe = KernelRecipe(
        config=_read_config(config or repository / _CONFIG, opened),
        command=_USUAL_BUILD if build is None else build,
    )
    recipe.require()
    commits = opened.range(text)
    # before hours are spent on builds
    find_image(find_machine_places().cache, base.host.destination)
    # the ends stand for all: only their kernels differ, on which no setting depends
    levels = KernelLevels(base=base, commits=commits)
    ends = (levels[0], levels[-1])
    whole = replace(parsed, environments=ends, baseline=ends[0].name, factors=(KERNEL,))
    experiment, _ = complete_by_hosts(whole, capacity, workloads)
    levels = replace(levels, base=experiment.environments[0])
    source = KernelSource(repository=opened, recipe=recipe)
    return SearchQuestion(experiment=experiment, factor=KERNEL, levels=levels, commits=commits, kernels=source)


def _read_config(path: Path, repository: Repository) -> bytes:
    try:
        with acting_as(repository.reader):
            content = reading.read_regular(path, most=sizes.KERNEL_CONFIG)
    except OSError as error:
        raise UsageError(
            f"the configuration of the kernel cannot be read: {error.strerror or error}",
            where=str(path),
            remedy="name one with --config, such as that of a kernel that is installed: /boot/config-RELEASE",
        ) from error
    if b"CONFIG_" not in content:
        raise UsageError(
            "this is not the configuration of a kernel", where=str(path), remedy="name a .config with --config"
        )
    return content


def search_folder(file: Path, question: SearchQuestion) -> Path:
    """studies/bisect-NAME-IDENTITY below the current folder: the same command finds the same search."""
    return Path("studies") / f"bisect-{file.stem}-{question.identity[:8]}"
