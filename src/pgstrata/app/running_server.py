"""Somebody's running server, reached by sessions that cannot write and wait for nobody for long."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Final

from pgstrata.app.machine import libpq_variables
from pgstrata.errors import HostNotFitError, UsageError
from pgstrata.experiment.keys import WrongValueError
from pgstrata.experiment.servers import mask_level, parse_server
from pgstrata.model.experiment import ServerKind
from pgstrata.model.server import Address
from pgstrata.servers.supply import address_of

EXTENSION: Final = "pg_stat_statements"
READ_ONLY: Final = "SELECT pg_catalog.current_setting('default_transaction_read_only') AS said"


def parse_dsn(dsn: str) -> Address:
    """The address that a service or a connection string names, with or without `dsn:`; UsageError if it is none."""
    level = dsn if dsn.startswith("dsn:") else f"dsn:{dsn}"
    try:
        spec = parse_server(*mask_level(level))
    except WrongValueError as error:
        what, remedy = error.what.replace("dsn: ", "it ", 1), error.remedy
        raise UsageError(
            what, where="DSN", remedy=remedy if dsn.startswith("dsn:") else remedy.replace("dsn:", "")
        ) from None
    assert spec.kind is ServerKind.DSN
    return address_of(spec, libpq_variables(os.environ))


def make_read_only(address: Address, *, statement_timeout: str) -> Address:
    """The address with settings by which its sessions cannot write, and end a statement that lasts too long."""
    settings = f"-c default_transaction_read_only=on -c statement_timeout={statement_timeout} -c lock_timeout=1s"
    options = f"{address.parameters.get('options', '')} {settings}".strip()
    return replace(address, parameters={**address.parameters, "options": options})


def require_read_only(said: str) -> None:
    """HostNotFitError where a service or a pooler has taken the settings away, by the answer to `READ_ONLY`."""
    if said != "on":
        raise HostNotFitError(
            "the sessions would not be read-only: a service or a pooler overrides the options of the connection",
            where="DSN",
            remedy="remove options from the service, or connect directly to the server",
        )
