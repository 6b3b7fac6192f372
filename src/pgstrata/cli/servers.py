"""`pgstrata servers list | fetch | check`."""

from __future__ import annotations

import json as json_module
import sys
from collections.abc import Sequence
from dataclasses import asdict

from pgstrata.app.machine import check_levels, open_machine
from pgstrata.errors import ExitCode


def list_servers(*, json: bool) -> None:
    """A line for each server that an experiment could name here."""
    with open_machine(_tell) as machine:
        rows = machine.servers.list()
    if json:
        print(json_module.dumps([asdict(row) for row in rows], indent=1))
        return
    width = max(len(row.level) for row in rows)
    for row in rows:
        state = row.where if row.fetched else "not fetched yet"
        print(f"{row.level:<{width}}  {row.version:<12} {row.supplier:<28} {state}")
    print("more: prefix:DIR for any installation, dsn:SERVICE for a running server")


def fetch_servers(levels: Sequence[str]) -> None:
    """Fetch, and say what came."""
    with open_machine(_tell) as machine:
        for build in machine.servers.fetch(levels):
            print(f"{build.spec.text}: {build.version.text}, {build.compiler}, in {build.prefix}")


def check_servers(levels: Sequence[str]) -> None:
    """A line for each program; exit code 1 if one does not start."""
    healthy = True
    with open_machine(_tell) as machine:
        for level, build, programs in tuple(check_levels(machine, levels)):
            print(f"{level}: {build.version.text}, {build.compiler or 'compiler unknown'}")
            for program in programs:
                healthy = healthy and program.works
                print(f"  {'ok  ' if program.works else 'FAIL'} {program.program}: {program.text}")
    if not healthy:
        sys.exit(ExitCode.FAILED)


def _tell(text: str) -> None:
    print(text, file=sys.stderr)
