"""What building PostgreSQL takes: which programs, which packages bring them, which compiler this is.

Building itself belongs to `build`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from pgstrata.errors import HostNotFitError
from pgstrata.model.packages import PACKAGES
from pgstrata.ports.host import Command, Host

# The C library's headers come apart; Debian's and Fedora's names.
_COMPILER: Final = ("gcc libc6-dev", "gcc glibc-devel")
_FEDORA: Final[Mapping[str, str]] = {"ninja": "ninja-build"}
_COMPILERS: Final = ("gcc", "clang", "cc")


def require_programs(host: Host, names: Iterable[str], where: str) -> None:
    """Refuse before anything is begun where a program is missing.

    Raises:
        HostNotFitError: it names all that are missing, and their packages.
    """
    missing = [name for name in names if not has_program(host, name)]
    if not missing:
        return
    debian, fedora = (" ".join(names) for names in zip(*map(_packages, missing), strict=True))
    raise HostNotFitError(
        f"building PostgreSQL takes {', '.join(missing)}, missing on this machine",
        where=where,
        remedy=f"apt-get install {debian} (Debian, Ubuntu), dnf install {fedora} (Fedora, RHEL)",
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
    done = host.run(Command(argv=(compiler, "--version"), environment={"LC_ALL": "C"}, folder="/"), check=False)
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
