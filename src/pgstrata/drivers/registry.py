"""All load generators by the key with which a cell names them; nothing else in pgstrata names one.

A driver is imported when it is used, because a plan needs no more than its capabilities.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from pgstrata.drivers import pgbench, sysbench
from pgstrata.errors import StudyError
from pgstrata.model.driver import DEFAULT_DRIVER, Capabilities
from pgstrata.model.experiment import Cell
from pgstrata.model.server import Address, Build
from pgstrata.ports.driver import Driver, DriverParser
from pgstrata.ports.host import Host


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredDriver:
    """One load generator.

    `parser` reads what its runs left. `make` takes the client's host and the build whose programs it uses there. `load`
    makes the data of a cell in an empty database, with the programs of a build that is on the given host and files in
    an empty folder there, and `verify` gives the query that checks them: both are asked of drivers only that load their
    own data. `programs` are those of such a build that it runs. `require` raises HostNotFitError where a host lacks
    what comes from no build.
    """

    capabilities: Capabilities
    parser: Callable[[], DriverParser]
    make: Callable[[Host, Build], Driver]
    load: Callable[[Host, Build, Address, Cell, str], None]
    verify: Callable[[Cell], str]
    programs: tuple[str, ...] = ()
    require: Callable[[Host], None] = lambda _: None


def find_driver(key: str) -> RegisteredDriver:
    """The driver of that key; StudyError if this pgstrata has none."""
    if key not in _DRIVERS:
        raise StudyError(
            f"this pgstrata has no driver {key!r}", remedy="use the pgstrata that made the study, or a newer one"
        )
    return _DRIVERS[key]


def driver_capabilities() -> Mapping[str, Capabilities]:
    """What each driver can do, by key: for plans."""
    return {key: driver.capabilities for key, driver in _DRIVERS.items()}


def load_data(host: Host, tools: Build, address: Address, cell: Cell, folder: str) -> None:
    """Make the data of a cell in an empty database; errors as those of its driver."""
    find_driver(cell.driver).load(host, tools, address, cell, folder)


def verify_data(cell: Cell) -> str:
    """The query that checks the data of a cell: a row for each check, columns item, expected, found, ok (boolean)."""
    return find_driver(cell.driver).verify(cell)


def driver_programs() -> tuple[str, ...]:
    """Programs of a PostgreSQL installation that drivers run."""
    return tuple(sorted({program for driver in _DRIVERS.values() for program in driver.programs}))


def _parse_pgbench() -> DriverParser:
    from pgstrata.drivers.pgbench.parse import PgbenchParser  # noqa: PLC0415 - a plan needs no parser

    return PgbenchParser()


def _make_pgbench(host: Host, tools: Build) -> Driver:
    from pgstrata.drivers.pgbench.driver import PgbenchDriver  # noqa: PLC0415 - a plan starts nothing

    return PgbenchDriver(host, tools)


def _load_pgbench(host: Host, tools: Build, address: Address, cell: Cell, folder: str) -> None:  # noqa: ARG001 - needs none
    from pgstrata.drivers.pgbench.driver import load_pgbench  # noqa: PLC0415 - a plan loads nothing

    load_pgbench(host, tools, address, cell.scale)


def _verify_pgbench(cell: Cell) -> str:
    from pgstrata.drivers.pgbench.driver import verify_sql  # noqa: PLC0415 - a plan loads nothing

    return verify_sql(cell.scale)


def _parse_sysbench() -> DriverParser:
    from pgstrata.drivers.sysbench.parse import SysbenchParser  # noqa: PLC0415 - a plan needs no parser

    return SysbenchParser()


def _make_sysbench(host: Host, tools: Build) -> Driver:  # noqa: ARG001 - no build has it
    from pgstrata.drivers.sysbench.driver import SysbenchDriver  # noqa: PLC0415 - a plan starts nothing

    return SysbenchDriver(host)


def _load_sysbench(host: Host, tools: Build, address: Address, cell: Cell, folder: str) -> None:  # noqa: ARG001 - no build has it
    from pgstrata.drivers.sysbench.loading import load_sysbench  # noqa: PLC0415 - a plan loads nothing

    load_sysbench(host, address, cell, folder)


def _verify_sysbench(cell: Cell) -> str:
    from pgstrata.drivers.sysbench.loading import verify_sysbench  # noqa: PLC0415 - a plan loads nothing

    return verify_sysbench(cell)


def _require_sysbench(host: Host) -> None:
    from pgstrata.drivers.sysbench.program import find_sysbench  # noqa: PLC0415 - a plan starts nothing

    find_sysbench(host)


_DRIVERS: Final[Mapping[str, RegisteredDriver]] = {
    DEFAULT_DRIVER: RegisteredDriver(
        capabilities=pgbench.CAPABILITIES,
        parser=_parse_pgbench,
        make=_make_pgbench,
        load=_load_pgbench,
        verify=_verify_pgbench,
        programs=("pgbench",),
    ),
    sysbench.NAME: RegisteredDriver(
        capabilities=sysbench.CAPABILITIES,
        parser=_parse_sysbench,
        make=_make_sysbench,
        load=_load_sysbench,
        verify=_verify_sysbench,
        require=_require_sysbench,
    ),
}
