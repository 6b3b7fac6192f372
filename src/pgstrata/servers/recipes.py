"""How PostgreSQL is built: by meson, or by configure and make; which of them a source has, and what they take.

Both build the same: what needs libraries beyond the C library and no benchmark uses is left out, so that builds are
alike on all machines, and where no flags are asked for it is -O2 without debugging symbols.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from pgstrata.errors import HostNotFitError
from pgstrata.model import sizes
from pgstrata.model.packages import PACKAGES
from pgstrata.ports.host import Command, Host
from pgstrata.servers.old_sources import NO_NEEDS, Edit, Needs

# The C library's headers come apart; Debian's and Fedora's names.
_COMPILER: Final = ("gcc libc6-dev", "gcc glibc-devel")
_FEDORA: Final[Mapping[str, str]] = {"ninja": "ninja-build"}
_COMPILERS: Final = ("gcc", "clang", "cc")


def require_programs(host: Host, names: Iterable[str], where: str, what: str = "PostgreSQL") -> None:
    """Refuse before anything is begun where a program is missing.

    Raises:
        HostNotFitError: it names all that are missing, and their packages.
    """
    missing = find_missing(host, names)
    if missing:
        raise missing_programs(missing, where, f"building {what}")


def find_missing(host: Host, names: Iterable[str]) -> tuple[str, ...]:
    """The programs that are not there; each is a name or a path."""
    return tuple(name for name in dict.fromkeys(names) if not has_program(host, name))


def missing_programs(missing: Sequence[str], where: str, task: str, *, apt_only: bool = False) -> HostNotFitError:
    """The error for programs that a task needs and that are missing on this machine, with all their packages."""
    debian, fedora = (" ".join(dict.fromkeys(names)) for names in zip(*map(_packages, missing), strict=True))
    return HostNotFitError(
        f"{task} needs {', '.join(missing)}, missing on this machine",
        where=where,
        remedy=f"apt-get install {debian} (Debian, Ubuntu)"
        + ("" if apt_only else f", dnf install {fedora} (Fedora, RHEL)"),
    )


def _packages(program: str) -> tuple[str, str]:
    if program in {"cc", "gcc"}:
        return _COMPILER
    return PACKAGES.get(program, program), _FEDORA.get(program, program)


def has_program(host: Host, name: str) -> bool:
    """Whether a program is on the path, or at that path."""
    command = Command(argv=("sh", "-c", 'command -v "$1"', "sh", name), folder="/")
    return host.run(command, check=False).code == 0


def choose_compiler(host: Host, asked: str) -> str:
    """The compiler that was asked for, or the first that there is."""
    return asked or next((name for name in _COMPILERS if has_program(host, name)), _COMPILERS[0])


def describe_compiler(host: Host, compiler: str) -> str:
    """The first line that it prints of its version.

    Raises:
        HostNotFitError: it does not start.
    """
    command = Command(argv=(compiler, "--version"), environment={"LC_ALL": "C"}, folder="/", memory=sizes.PROGRAM)
    done = host.run(command, check=False)
    if done.code != 0:
        raise HostNotFitError(
            "the compiler does not start",
            where=compiler,
            details=done.last_words(),
            remedy="name another build.compiler",
        )
    return done.text.strip().partition("\n")[0]


def processor_model(host: Host) -> str:
    """What `native` among the flags stands for on this machine."""
    text = host.read_files(("/proc/cpuinfo",)).get("/proc/cpuinfo", b"").decode("utf-8", "replace")
    wanted = ("model name", "cpu family", "stepping", "CPU part", "flags", "Features")
    lines = text.partition("\n\n")[0].splitlines()
    return "\n".join(line for line in lines if line.startswith(wanted))


CONFIGURE_FILE: Final = "configure"
MESON_FILE: Final = "meson.build"
PARSER_FILE: Final = "src/backend/parser/gram.c"
"""What bison makes; archives of releases hold it, up to 16."""
PREWARM_FILE: Final = "contrib/pg_prewarm/Makefile"
"""The Makefile of the extension that reads data into memory, from 9.4 on."""
TELLING_FILES: Final = (CONFIGURE_FILE, MESON_FILE, PARSER_FILE, PREWARM_FILE)
"""Files of a source, relative to its top, that tell how it can be built."""

_CONFIGURE_OPTIONS: Final = ("--without-readline", "--without-zlib", "--without-icu")
_EXTENSIONS: Final = ("contrib/pg_prewarm",)
# "plain" adds no flags of meson's own; --libdir because distributions have other defaults than PostgreSQL.
_MESON_OPTIONS: Final = ("--buildtype=plain", "--auto-features=disabled", "--libdir=lib", "-Dssl=none")
_USUAL_FLAGS: Final = "-O2"
_PROGRESS: Final = re.compile(r"\[\d+/\d+\] |ninja: ")
_FAILED: Final = "FAILED: "
_NOT_INHERITED: Final = ("CC", "CC_LD", "CFLAGS", "CPPFLAGS", "LDFLAGS", "LIBS", "MAKEFLAGS", "DESTDIR")


class System(StrEnum):
    """What builds a source, the preferred one first."""

    MESON = "meson"
    CONFIGURE = "configure"


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildRecipe:
    """One build.

    Args:
        system: what builds.
        compiler: a program.
        flags: for the compiler; empty for -O2.
        prewarm: whether the source has pg_prewarm, which configure's builds are given apart.
        scans: whether the source is a checkout, of which flex makes the scanners. configure is told its name then: up
            to minor releases of 2017 it takes flex 2.6 for one that is older than 2.5.31.
        needs: what the source takes because of its version, if configure builds it.
    """

    system: System
    compiler: str
    flags: str
    prewarm: bool = True
    scans: bool = False
    needs: Needs = NO_NEEDS

    @property
    def options(self) -> str:
        """What meson is asked for, because a server that it built does not say so; empty for configure."""
        if self.system is System.CONFIGURE:
            return ""
        return " ".join((*_MESON_OPTIONS, f"-Dc_args={self.flags or _USUAL_FLAGS}"))

    @property
    def distinct_flags(self) -> str:
        """The flags, empty where they are those that meson gets anyway: both are one build."""
        return "" if self.system is System.MESON and self.flags == _USUAL_FLAGS else self.flags

    def steps(self, prefix: str, tree: str, stage: str, objects: str, cpus: int) -> tuple[tuple[str, ...], ...]:
        """Commands in the tree. It is configured for its final place and staged: it appears there as a whole.

        Args:
            prefix: the final place.
            tree: a copy of the source, which may be written to.
            stage: the folder below which it is installed.
            objects: the folder where meson builds.
            cpus: how many compilers run at once.
        """
        if self.system is System.MESON:
            flags = f"-Dc_args={self.flags or _USUAL_FLAGS}"
            setup = ("meson", "setup", f"--prefix={prefix}", *_MESON_OPTIONS, flags, objects, tree)
            install = ("meson", "install", "-C", objects, "--no-rebuild", "--quiet")
            return (
                (*_clean(f"CC={self.compiler}"), *setup),
                (*_clean(), "ninja", "-C", objects, f"-j{cpus}"),
                (*_clean(f"DESTDIR={stage}"), *install),
            )
        flags = " ".join((self.flags or _USUAL_FLAGS, *self.needs.flags)) if self.flags or self.needs.flags else ""
        given = (*((f"CFLAGS={flags}",) if flags else ()), *(("FLEX=flex",) if self.scans else ()))
        configure = (
            "./configure", f"--prefix={prefix}", *_CONFIGURE_OPTIONS, f"CC={self.compiler}", *given, "CPPFLAGS=",
            "LDFLAGS=",
        )  # fmt: skip
        extensions = _EXTENSIONS if self.prewarm else ()
        whole: tuple[tuple[str, ...], ...] = () if self.needs.folders else ((),)
        parts = (*whole, *(("-C", each) for each in (*self.needs.folders, *extensions)))
        make = tuple(("make", *part, f"-j{cpus}") for part in parts)
        installs = tuple(("make", *part, "install", f"DESTDIR={stage}") for part in parts)
        edits = tuple(_insert(edit) for edit in self.needs.edits if self.scans)
        return tuple((*_clean(), *step) for step in (*edits, configure, *make, *installs))


def _insert(edit: Edit) -> tuple[str, ...]:
    return ("sed", "-i", "1i\\\n" + "\\\n".join(edit.lines), edit.file)


def _clean(*variables: str) -> tuple[str, ...]:
    # An empty CFLAGS in the environment would already replace PostgreSQL's own -O2.
    return ("env", *(word for name in _NOT_INHERITED for word in ("-u", name)), *variables)


def systems_of(held: Collection[str]) -> tuple[System, ...]:
    """What can build a source that holds these of the telling files, the preferred one first.

    meson refuses a source with files that other programs made (the archives of 16).
    """
    meson = (System.MESON,) if MESON_FILE in held and PARSER_FILE not in held else ()
    return (*meson, *((System.CONFIGURE,) if CONFIGURE_FILE in held else ()))


def programs_of(system: System, held: Collection[str]) -> tuple[str, ...]:
    """Programs that building takes besides the compiler."""
    if system is System.MESON:
        return ("meson", "ninja", "perl", "bison", "flex")
    return ("make", "perl") if PARSER_FILE in held else ("make", "perl", "bison", "flex")


def reason_in(lines: Sequence[str], most: int) -> list[str]:
    """At most so many lines that say why a build failed: the last ones, or what ninja printed of the step that failed.

    ninja writes "FAILED: target", the step's command and all that it said; what the other compilers say until they end
    comes after it, headed by how far the build is.
    """
    first = next((number for number, line in enumerate(lines) if line.startswith(_FAILED)), None)
    if first is None:
        return list(lines[-most:])
    said = lines[first + 2 :]
    end = next((number for number, line in enumerate(said) if _PROGRESS.match(line)), len(said))
    return [lines[first], *said[max(0, end - most + 1) : end]]
