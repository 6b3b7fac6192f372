"""Building of PostgreSQL from source by meson or configure, once for each source, system, compiler and flags.

A source runs what it likes while it is built: root leaves that to the user that servers run as. What that user made is
copied as its own, without links being followed.

The result is installed into the cache; the log of the build lies in it, or beside it where the build failed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pgstrata.errors import DiskFullError, PgstrataError, UsageError, find_disk_full
from pgstrata.model import sizes
from pgstrata.model.experiment import ServerSpec
from pgstrata.ports.host import Command
from pgstrata.servers.old_sources import NO_NEEDS, Needs, needs_of, parse_major
from pgstrata.servers.recipes import (
    CONFIGURE_FILE,
    MESON_FILE,
    PARSER_FILE,
    PREWARM_FILE,
    BuildRecipe,
    System,
    choose_compiler,
    describe_compiler,
    has_program,
    processor_model,
    programs_of,
    reason_in,
    require_programs,
    systems_of,
)
from pgstrata.servers.shelf import DISK_REMEDY, ServerSite
from pgstrata.servers.tree import BuildUser, Source, find_source
from pgstrata.system import files
from pgstrata.system.commands import empty_folder
from pgstrata.system.trees import copy_tree
from pgstrata.system.users import UserIds

_RECIPE: Final = "1"  # another one wherever servers are built otherwise than before
_SYSTEM: Final = "system"
_STEP_TIMEOUT: Final = 2 * 3600.0
_LOG: Final = "build.log"
# What configure and meson tried, where they say so.
_TRIED: Final = ("tree/config.log", "objects/meson-logs/meson-log.txt")
_PROGRAMS: Final = frozenset({"./configure", "make", "meson", "ninja", "sed"})
_MOST_TRIED: Final = "1000000"
_TAIL: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """An installation that was built here.

    Args:
        prefix: where it is.
        recipe: how it was built.
        compiler: what the compiler says it is.
        origin: what the level does not say of the source; may be empty.
    """

    prefix: str
    recipe: BuildRecipe
    compiler: str
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Builder:
    """Builds on the coordinator into the cache.

    Args:
        site: where it is built, and the cache.
        cpus: how many compilers run at once.
    """

    site: ServerSite
    cpus: int

    @property
    def _user(self) -> BuildUser:
        other = self.site.host.user != self.site.here.user
        return BuildUser(host=self.site.host, ids=UserIds.of(self.site.host.user) if other else None)

    def build(self, spec: ServerSpec) -> Built:
        """The installation, built first if there is none of this source, system, compiler and flags.

        Raises:
            UsageError: there is no source that can be built.
            HostNotFitError: a program is missing, or the cache cannot be written.
            DiskFullError: no room.
            PgstrataError: the build failed; the error shows the end of its log and says where the whole is.
        """
        source, asked = find_source(self.site.here, spec.value, self._user), dict(spec.build)
        source.require()
        held = source.holds()
        recipe = BuildRecipe(
            system=self._possible(spec, held)[0],
            compiler=choose_compiler(self.site.host, asked.get("compiler", "")),
            flags=asked.get("flags", ""),
            prewarm=PREWARM_FILE in held,
            scans=PARSER_FILE not in held,
            needs=_needs(source, held),
        )
        require_programs(self.site.host, (recipe.compiler, *programs_of(recipe.system, held)), spec.text)
        described = describe_compiler(self.site.host, recipe.compiler)
        name = f"build-{self._key(source, recipe, described)}"
        self.site.shelf.bring(name, self._bring(spec, source, recipe))
        return Built(prefix=str(self.site.shelf.folder(name)), recipe=recipe, compiler=described, origin=source.origin)

    def alike(self, specs: Iterable[ServerSpec]) -> Mapping[str, ServerSpec]:
        """Sources with the system that builds them, one for all of them where there is one; by their former text.

        Raises:
            UsageError, HostNotFitError: as `build`.
        """
        possible = {spec: self._systems(spec) for spec in dict.fromkeys(specs)}
        common = next((one for one in System if all(one in each for each in possible.values())), None)
        return {
            spec.text: replace(spec, build=tuple(sorted({**dict(spec.build), _SYSTEM: common or systems[0]}.items())))
            for spec, systems in possible.items()
        }

    def _systems(self, spec: ServerSpec) -> tuple[System, ...]:
        source = find_source(self.site.here, spec.value, self._user)
        source.require()
        return self._possible(spec, source.holds())

    def _possible(self, spec: ServerSpec, held: frozenset[str]) -> tuple[System, ...]:
        """What could build a source that holds these files, the preferred one first; at least one."""
        can, asked = systems_of(held), dict(spec.build).get(_SYSTEM)
        if not can:
            raise UsageError(
                f"this is not a source of PostgreSQL: there is no {CONFIGURE_FILE} and no {MESON_FILE} in it",
                where=spec.text,
                remedy="name the top folder of the source, or a tarball with that one folder in it",
            )
        if asked and asked not in can:
            raise UsageError(
                f"this source cannot be built by {asked}",
                where=spec.text,
                remedy=f"write build.system = {can[0].value!r}, or leave it out",
            )
        if asked:
            return (System(asked),)
        if len(can) > 1 and not all(has_program(self.site.host, name) for name in ("meson", "ninja")):
            return (System.CONFIGURE,)
        return can

    def _key(self, source: Source, recipe: BuildRecipe, described: str) -> str:
        native = processor_model(self.site.here) if "native" in recipe.flags else ""
        parts = (_RECIPE, source.digest(), recipe.compiler, described, recipe.distinct_flags, native)
        # builds of the time when there was but configure, and no version took flags of its own, are found again
        system = () if recipe.system is System.CONFIGURE else (recipe.system,)
        return hashlib.sha256("\0".join((*parts, *system, *recipe.needs.flags)).encode()).hexdigest()[:16]

    def _bring(self, spec: ServerSpec, source: Source, recipe: BuildRecipe) -> Callable[[Path, Path], None]:
        def fill(scratch: Path, partial: Path) -> None:
            final = partial.with_name(partial.name.removesuffix(".partial"))
            log = final.with_name(f"{final.name}.log")
            files.remove_file(log)
            self.site.note(f"building {spec.text} by {recipe.system}, which takes some minutes")
            user, work = self._user, scratch / "build"
            files.make_folder(work, mode=0o700, owner=user.ids)
            tree, stage, objects = work / "tree", work / "stage", work / "objects"
            try:
                source.copy(tree)
                for argv in recipe.steps(str(final), str(tree), str(stage), str(objects), self.cpus):
                    self._step(spec, argv, work, log, memory=_memory(recipe))
                copy_tree(stage / str(final).lstrip("/"), partial, reader=user.ids, for_all=True)
            finally:
                self.site.host.run(Command(argv=empty_folder(str(work))), check=False)
            files.rename(log, partial / _LOG)
            files.open_file(partial / _LOG)

        return fill

    def _step(self, spec: ServerSpec, argv: Sequence[str], work: Path, log: Path, *, memory: int | None) -> None:
        command = Command(argv=tuple(argv), environment={"LC_ALL": "C"}, folder=str(work / "tree"), memory=memory)
        done = self.site.host.run(command, timeout=_STEP_TIMEOUT, check=False)
        files.append(log, f"$ {' '.join(argv)}\n".encode() + done.stdout + done.stderr)
        if done.code == 0:
            return
        for name in _TRIED:
            tried = self.site.host.run(Command(argv=("tail", "-c", _MOST_TRIED, "--", str(work / name))), check=False)
            if tried.code == 0:
                files.append(log, f"\n{name.rpartition('/')[2]}:\n".encode() + tried.stdout)
        program = next(word for word in argv if word in _PROGRAMS)
        # The reason stands among the errors; standard output goes on while other compilers end.
        lines = reason_in((done.stderr.strip() or done.stdout).decode("utf-8", "replace").splitlines(), _TAIL)
        if find_disk_full("\n".join(lines)):
            raise DiskFullError("the disk is full while PostgreSQL is built", where=self.site.cache, remedy=DISK_REMEDY)
        raise PgstrataError(
            f"PostgreSQL cannot be built: {program} ended with exit code {done.code}",
            where=spec.text,
            details=tuple(lines),
            remedy=f"the whole log is in {log}",
        )


def _needs(source: Source, held: frozenset[str]) -> Needs:
    """Sources with meson are too new to need anything: they are not asked for their version."""
    return NO_NEEDS if MESON_FILE in held else needs_of(parse_major(source.text(CONFIGURE_FILE)))


def _memory(recipe: BuildRecipe) -> int | None:
    """`Command.memory` of a step; sanitizers reserve terabytes that they do not use."""
    return None if "sanitize" in recipe.flags else sizes.PROGRAM
