"""Building of PostgreSQL from source by configure and make, once for each source, compiler and flags.

The result is installed into the cache; the log of the build lies in it, or beside it where the build failed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pgstrata.errors import DiskFullError, PgstrataError, find_disk_full
from pgstrata.model.experiment import ServerSpec
from pgstrata.ports.host import Command, Host
from pgstrata.servers.shelf import DISK_REMEDY, Shelf
from pgstrata.servers.toolchain import (
    choose_compiler,
    describe_compiler,
    has_program,
    processor_model,
    require_programs,
)
from pgstrata.servers.tree import Source, require_generated

BUILD_SUPPLIER: Final = "built from source"
_RECIPE: Final = "1"  # another one wherever servers are built otherwise than before
# Without what needs libraries beyond the C library and no benchmark uses: builds are alike on all machines.
_OPTIONS: Final = ("--without-readline", "--without-zlib", "--without-icu")
_EXTENSIONS: Final = ("contrib/pg_prewarm",)
_NOT_INHERITED: Final = ("CC", "CFLAGS", "CPPFLAGS", "LDFLAGS", "LIBS", "MAKEFLAGS", "DESTDIR")
_STEP_TIMEOUT: Final = 2 * 3600.0
_LOG: Final = "build.log"
_TAIL: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Builder:
    """Builds on the coordinator into the cache.

    Args:
        here: the coordinator, as the user that pgstrata runs as.
        cache: folder on the coordinator; everything in it is readable by everybody.
        cpus: how many compilers run at once.
        note: is told what takes a while.
    """

    here: Host
    cache: str
    cpus: int
    note: Callable[[str], None]

    def build(self, spec: ServerSpec) -> str:
        """The prefix of the installation, built first if there is none of this source, compiler and flags.

        Raises:
            UsageError: there is no source that can be built.
            HostNotFitError: a program is missing, or the cache cannot be written.
            DiskFullError: no room.
            PgstrataError: the build failed; the error shows the end of its log and says where the whole is.
        """
        source, asked = Source(path=spec.value), dict(spec.build)
        source.require()
        compiler, flags = choose_compiler(self.here, asked.get("compiler", "")), asked.get("flags", "")
        require_programs(self.here, (compiler, *source.programs()), spec.text)
        name = f"build-{self._key(source, compiler, flags)}"
        shelf = Shelf(cache=self.cache)
        if not shelf.has(name):
            shelf.bring(name, name, self._bring(spec, source, compiler, flags))
        return str(shelf.folder(name))

    def _key(self, source: Source, compiler: str, flags: str) -> str:
        native = processor_model(self.here) if "native" in flags else ""
        parts = (_RECIPE, source.digest(), compiler, describe_compiler(self.here, compiler), flags, native)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]

    def _bring(self, spec: ServerSpec, source: Source, compiler: str, flags: str) -> Callable[[Path, Path], None]:
        def fill(scratch: Path, partial: Path) -> None:
            final = partial.with_name(partial.name.removesuffix(".partial"))
            log = final.with_name(f"{final.name}.log")
            log.unlink(missing_ok=True)
            self.note(f"building {spec.text}, which takes some minutes")
            tree, stage = scratch / "tree", scratch / "stage"
            source.copy(self.here, tree)
            missing = tuple(name for name in ("bison", "flex") if not has_program(self.here, name))
            require_generated(tree, missing)
            for argv in self._steps(str(final), str(stage), compiler, flags):
                self._step(spec, argv, tree, log)
            _install(stage / str(final).lstrip("/"), partial)
            shutil.move(log, partial / _LOG)
            (partial / _LOG).chmod(0o644)

        return fill

    def _steps(self, prefix: str, stage: str, compiler: str, flags: str) -> tuple[tuple[str, ...], ...]:
        """Commands in the tree. It is configured for its final place and staged: it appears there as a whole."""
        given = (f"CFLAGS={flags}",) if flags else ()
        configure = ("./configure", f"--prefix={prefix}", *_OPTIONS, f"CC={compiler}", *given, "CPPFLAGS=", "LDFLAGS=")
        parts: tuple[tuple[str, ...], ...] = ((), *(("-C", extension) for extension in _EXTENSIONS))
        make = tuple(("make", *part, f"-j{self.cpus}") for part in parts)
        install = tuple(("make", *part, "install", f"DESTDIR={stage}") for part in parts)
        # An empty CFLAGS in the environment would already replace PostgreSQL's own -O2.
        clean = ("env", *(word for name in _NOT_INHERITED for word in ("-u", name)))
        return tuple((*clean, *step) for step in (configure, *make, *install))

    def _step(self, spec: ServerSpec, argv: Sequence[str], tree: Path, log: Path) -> None:
        command = Command(argv=tuple(argv), environment={"LC_ALL": "C"}, folder=str(tree))
        done = self.here.run(command, timeout=_STEP_TIMEOUT, check=False)
        with log.open("ab") as file:
            file.write(f"$ {' '.join(argv)}\n".encode() + done.stdout + done.stderr)
        if done.code == 0:
            return
        program = next(word for word in argv if word in {"./configure", "make"})
        # The reason stands among the errors; standard output goes on while other compilers end.
        lines = (done.stderr.strip() or done.stdout).decode("utf-8", "replace").splitlines()[-_TAIL:]
        if find_disk_full("\n".join(lines)):
            raise DiskFullError("the disk is full while PostgreSQL is built", where=self.cache, remedy=DISK_REMEDY)
        raise PgstrataError(
            f"PostgreSQL cannot be built: {program} ended with exit code {done.code}",
            where=spec.text,
            details=tuple(lines),
            remedy=f"the whole log is in {log}",
        )


def _install(staged: Path, target: Path) -> None:
    """Move what was installed to where it becomes visible, readable by everybody whatever the umask says."""
    for path in sorted(staged.iterdir()):
        shutil.move(path, target / path.name)
    for folder, _, names in os.walk(target):
        Path(folder).chmod(0o755)
        for file in (Path(folder, name) for name in names):
            if not file.is_symlink():
                file.chmod(0o755 if file.stat().st_mode & 0o100 else 0o644)
