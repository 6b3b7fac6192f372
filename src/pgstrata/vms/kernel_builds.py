"""Kernels built from commits of Linux, once for each commit, configuration, command and compiler.

A build is a folder `kernels/COMMIT.KEY` of the cache: `vmlinuz`, `initrd.img`, `config`, `build.log`, `lib/modules`
and `kernel.json`. Its release ends with `-gCOMMIT.KEY`, twelve and eight digits, so that `uname -r` tells it from all
others. A source runs what it likes while it is built: as for servers, root leaves that to the user that servers run as,
and copies what that user made without following links.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pgstrata.errors import (
    CommandFailedError,
    DiskFullError,
    HostNotFitError,
    PgstrataError,
    UsageError,
    find_disk_full,
)
from pgstrata.model import sizes
from pgstrata.model.codec import parse_json
from pgstrata.ports.host import Command, Host
from pgstrata.servers.commits import Repository
from pgstrata.servers.recipes import (
    choose_compiler,
    describe_compiler,
    find_missing,
    has_program,
    missing_programs,
    require_programs,
)
from pgstrata.servers.shelf import DISK_REMEDY, ServerSite, Shelf
from pgstrata.servers.tree import BuildUser, owned, unpack
from pgstrata.system import files, reading
from pgstrata.system.commands import empty_folder
from pgstrata.system.trees import copy_tree
from pgstrata.system.users import UserIds
from pgstrata.vms.first_files import make_first_files, require_inside, require_no_links
from pgstrata.vms.initramfs import BUSYBOX, make_initramfs
from pgstrata.vms.kernels import modules_in_order

PLACE: Final = "kernels"
FACTS: Final = "kernel.json"
_RECIPE: Final = "1"  # another one wherever kernels are built otherwise than before
_OWN: Final = re.compile(r".*-g(?P<commit>[0-9a-f]{12})\.(?P<key>[0-9a-f]{8})")
_COMMIT, _KEY = 12, 8
_FOLDER: Final = re.compile(r"[0-9a-f]{12}\.[0-9a-f]{8}")
_LONG: Final = 4 * 3600.0
_LOG: Final = "build.log"
_TAIL: Final = 8
_IMAGE: Final = "arch/x86/boot/bzImage"
_ASSIGNED: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*", re.DOTALL)
# Who sets them builds elsewhere, or makes the kernel unrecognisable.
_REFUSED: Final = ("O", "KBUILD_OUTPUT", "LOCALVERSION", "INSTALL_MOD_PATH")
_NOT_INHERITED: Final = (
    *_REFUSED, "MAKEFLAGS", "MFLAGS", "ARCH", "SUBARCH", "CROSS_COMPILE", "CC", "LD", "LLVM", "KCFLAGS", "KAFLAGS",
    "KCONFIG_CONFIG", "KCONFIG_ALLCONFIG",
)  # fmt: skip
_ERROR: Final = re.compile(r"\berror:|No rule to make target|: not found|undefined reference", re.IGNORECASE)
_MOST_SAID: Final = 160
_NO_PROGRAM: Final = re.compile(
    r"(?<![\w./+-])(?P<program>[\w.+-]+): (?:command |)(?:not found|No such file or directory)$"
)
"""The words of shells and of make where a program is missing."""
_OFTEN_NEEDED: Final = ("flex", "bison", "bc", "perl")
"""Programs that kernels need from some version on (Documentation/process/changes.rst), besides those that all need."""
_LARGEST_OWN: Final = 128
"""Larger exit codes are those of a shell whose command was ended by a signal; such codes below 0 are signals, too."""
_KILLED: Final = re.compile(
    r"\b(?:Killed|Terminated)\b|\bError 1(?:37|43)\b|\bsignal (?:9|15)\b|out of memory|[Cc]annot allocate memory"
)
"""The words of make, shells, compilers and linkers where a program was ended from outside, or had no memory."""
# Kernels before 3.7 know only the older name.
_CONFIGURE: Final = 'make -s "$@" olddefconfig || make -s "$@" oldnoconfig'
# `modules.order` lists the modules that were built; a kernel without any has none, or an empty one.
_INSTALL: Final = f"""set -e
stage=$1; shift
mkdir -p "$stage"
if [ -s modules.order ]; then make -s "$@" INSTALL_MOD_PATH="$stage" INSTALL_MOD_STRIP=1 modules_install; fi
for each in "$stage"/lib/modules/*; do rm -f "$each/build" "$each/source"; done
cp {_IMAGE} "$stage/vmlinuz"
cp .config "$stage/config"
cp include/config/kernel.release "$stage/release"
if [ -e modules.builtin ]; then cp modules.builtin "$stage/modules.builtin"; fi
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRecipe:
    """How each commit is built: `config` is the content of a .config, `command` a line for the shell."""

    config: bytes
    command: str

    def require(self) -> None:
        """UsageError for a command that builds elsewhere, or gives the kernel a name of its own."""
        wrong = next((word for word in self._assigned() if word.partition("=")[0] in _REFUSED), None)
        if wrong:
            raise UsageError(
                f"the build command sets {wrong.partition('=')[0]}, which pgstrata needs for itself",
                where="--build",
                remedy="remove it: the kernel is built in a folder of its own, and its release names the commit",
            )

    @property
    def variables(self) -> tuple[str, ...]:
        """Variables that the command sets, such as CC=clang; configuring takes them, too."""
        return tuple(self._assigned())

    @property
    def compiler(self) -> str:
        """The compiler that the command names; empty for the usual one."""
        given = dict(word.split("=", 1) for word in self._assigned())
        if given.get("CC", "").split():
            return given["CC"].split()[-1]
        llvm = given.get("LLVM", "0")
        return "" if llvm == "0" else f"clang{llvm if llvm.startswith('-') else ''}"

    def _assigned(self) -> list[str]:
        try:
            words = shlex.split(self.command)
        except ValueError as error:
            raise UsageError(
                f"the build command is not complete: {str(error).lower()}",
                where="--build",
                remedy='write it as in a shell: --build "make -j8 bzImage modules"',
            ) from None
        return [word for word in words if _ASSIGNED.fullmatch(word)]


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelBuilder:
    """Builds commits of one repository on the coordinator into the cache."""

    site: ServerSite
    repository: Repository
    recipe: KernelRecipe

    def build(self, commit: str) -> str:
        """The release of a commit's kernel, which is built first if it is not in the cache.

        Raises:
            UsageError: the command cannot be used.
            HostNotFitError: a program is missing, the cache cannot be written, or the build was killed.
            DiskFullError: no room.
            PgstrataError: the commit cannot be built, or lacks drivers; its `what` has the reason in one line.
        """
        self.recipe.require()
        compiler = choose_compiler(self.site.host, self.recipe.compiler)
        require_programs(self.site.host, ("make", "tar", "gzip", compiler), "--build", "a kernel")
        described = describe_compiler(self.site.host, compiler)
        name = f"{commit[:_COMMIT]}.{self._key(commit, described)}"
        shelf = Shelf(cache=self.site.cache, note=self.site.note, place=PLACE)
        shelf.bring(name, self._bring(commit, name, described))
        return read_release(shelf.folder(name))

    def _key(self, commit: str, compiler: str) -> str:
        config = hashlib.sha256(self.recipe.config).hexdigest()
        parts = (_RECIPE, commit, config, self.recipe.command, compiler, owned(self.repository.reader))
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:_KEY]

    def _bring(self, commit: str, name: str, compiler: str) -> Callable[[Path, Path], None]:
        def fill(scratch: Path, partial: Path) -> None:
            log = partial.with_name(f"{name}.log")
            files.remove_file(log)
            self.site.note(f"building the kernel of commit {commit[:_COMMIT]}, which takes some minutes")
            host, here = self.site.host, self.site.here
            ids = UserIds.of(host.user) if host.user != here.user else None
            work = scratch / "build"
            files.make_folder(work, mode=0o700, owner=ids)
            try:
                self._compile(commit, name, work, log)
                copy_tree(work / "stage", partial, reader=ids, for_all=True)
                require_no_links(partial)
            finally:
                host.run(Command(argv=empty_folder(str(work))), timeout=_LONG, check=False)
            release = self._check_release(partial, commit, name, log)
            require_inside(partial, partial / "vmlinuz")
            files.write_new(partial / "initrd.img", self._first_files(partial, release, commit))
            facts = {"release": release, "commit": commit, "compiler": compiler, "command": self.recipe.command}
            files.write_new(partial / FACTS, json.dumps(facts).encode())
            files.rename(log, partial / _LOG)
            files.open_file(partial / _LOG)

        return fill

    def _compile(self, commit: str, name: str, work: Path, log: Path) -> None:
        tree, where = work / "tree", self._where(commit)
        user = BuildUser(host=self.site.host)
        # by parts, so that no more than the largest folder of Linux is in memory
        for part in self.repository.names(commit):
            unpack(user.host, self.repository.export(commit, part), "gzip", tree, where)
        user.host.write(str(tree / ".config"), self.recipe.config)
        make = _Make(host=user.host, tree=tree, log=log, version=f"-g{name}", where=where)
        make.step("make olddefconfig", ("sh", "-c", _CONFIGURE, "sh", *self.recipe.variables))
        make.step(self.recipe.command, ("sh", "-c", self.recipe.command))
        make.step("make modules_install", ("sh", "-c", _INSTALL, "sh", str(work / "stage"), *self.recipe.variables))

    def _check_release(self, partial: Path, commit: str, name: str, log: Path) -> str:
        said = reading.read_regular(partial / "release", most=sizes.MARKER).decode("utf-8", "replace").strip()
        if not said.endswith(f"-g{name}") or "/" in said:
            raise PgstrataError(
                f"the release of the kernel is {said!r:.80}, without the LOCALVERSION that pgstrata gave its build",
                where=self._where(commit),
                remedy=f"do not change LOCALVERSION in the build command; the whole log is in {log}",
            )
        return said

    def _first_files(self, partial: Path, release: str, commit: str) -> bytes:
        try:
            if (partial / "lib/modules").is_dir():
                return make_first_files(self.site.here, BUSYBOX, partial, release)
            builtin = partial / "modules.builtin"
            if builtin.exists():
                text = reading.read_regular(builtin, most=sizes.SCRIPT).decode("utf-8", "replace")
                modules_in_order("", text, where=release)
            return make_initramfs(Path(BUSYBOX).read_bytes(), ())
        except DiskFullError:
            raise
        except (HostNotFitError, CommandFailedError) as error:
            raise PgstrataError(error.what, where=self._where(commit), remedy=error.remedy) from error

    def _where(self, commit: str) -> str:
        return f"{self.repository.folder}@{commit[:_COMMIT]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Make:
    """Runs steps of a build in its tree and keeps their output; `version` ends the release of the kernel."""

    host: Host
    tree: Path
    log: Path
    version: str
    where: str

    def step(self, name: str, argv: Sequence[str]) -> None:
        """Run it.

        Raises:
            PgstrataError: it failed.
            DiskFullError: there was no room.
            HostNotFitError: it was killed, or a program is missing.
        """
        inherited = tuple(word for each in _NOT_INHERITED for word in ("-u", each))
        given = (f"LOCALVERSION={self.version}", "KBUILD_BUILD_USER=pgstrata", "KBUILD_BUILD_HOST=pgstrata", "LC_ALL=C")
        # linking with all optimisations may take more memory than other programs are given
        command = Command(argv=("env", *inherited, *given, *argv), folder=str(self.tree))
        done = self.host.run(command, timeout=_LONG, check=False)
        files.append(self.log, f"$ {name}\n".encode() + done.stdout + done.stderr)
        if done.code == 0:
            return
        lines = (done.complaints.strip() or done.text).splitlines()
        if find_disk_full("\n".join(lines)):
            raise DiskFullError("the disk is full while a kernel is built", where=str(self.log), remedy=DISK_REMEDY)
        if missing := self._missing(lines):
            raise missing_programs(missing, self.where, "building this kernel")
        if not 0 < done.code <= _LARGEST_OWN or any(map(_KILLED.search, lines)):
            raise HostNotFitError(
                f"the build of a kernel was killed: {name} ended with exit code {done.code}",
                where=self.where,
                details=tuple(lines[-_TAIL:]),
                remedy=f"give the same command again, with fewer jobs (-j) if memory ran out; log: {self.log}",
            )
        ended = f"{name} ended with exit code {done.code}"
        raise PgstrataError(
            f"the kernel cannot be built: {ended}: {_reason_in(lines):.{_MOST_SAID}}".rstrip(": "),
            where=self.where,
            details=tuple(lines[-_TAIL:]),
            remedy=f"the whole log is in {self.log}",
        )

    def _missing(self, lines: Sequence[str]) -> tuple[str, ...]:
        """The program without which the build failed, with all others that kernels may need; empty for other faults."""
        said = _NO_PROGRAM.search(_reason_in(lines))
        if not said or has_program(self.host, said["program"]):
            return ()
        if "not found" not in said[0] and said["program"] not in _OFTEN_NEEDED:
            return ()  # some file of the source
        return find_missing(self.host, (said["program"], *_OFTEN_NEEDED))


def _reason_in(lines: Sequence[str]) -> str:
    """The first line that names an error, or else the one above make's own (***), or the last one."""
    said = [line.strip() for line in lines if line.strip()]
    stars = next((place for place, line in enumerate(said) if "***" in line), 0)
    found = next((line for line in said if _ERROR.search(line)), "")
    return found or (said[stars - 1] if said else "")


def find_built(cache: str, release: str) -> Path | None:
    """The folder of a kernel that was built from a commit; None if there is none of that release."""
    own = _OWN.fullmatch(release)
    if own is None:
        return None
    folder = Path(cache, PLACE, f"{own['commit']}.{own['key']}")
    return folder if folder.is_dir() and read_release(folder) == release else None


def list_built(cache: str) -> tuple[Path, ...]:
    """The folders of all kernels that were built from commits."""
    found = (path.parent for path in Path(cache, PLACE).glob(f"*/{FACTS}"))
    return tuple(sorted(folder for folder in found if _FOLDER.fullmatch(folder.name)))


def read_release(folder: Path) -> str:
    """The release of a kernel that was built, by its folder; HostNotFitError where it is damaged."""
    try:
        facts: Any = parse_json(reading.read_regular(folder / FACTS, most=sizes.MARKER))
        return str(facts["release"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise HostNotFitError(
            "a kernel in the cache is damaged", where=str(folder), remedy="remove that folder: it is built again"
        ) from error
