"""Examine a host that the user's own ssh reaches: the same questions, and how far away it is.

The two programs that time flush and clock are its own where a server is installed there; else they are sent, to a
folder of their own that is gone afterwards. Nothing else is written there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Final

from pgstrata.app.doctor import Installations, examine, examine_here, find_installations, guard
from pgstrata.app.machine import SystemClock
from pgstrata.app.places import find_machine_places
from pgstrata.app.site import Site, named_destination, open_site
from pgstrata.collectors.hostfacts.probes import judge_connection
from pgstrata.collectors.pgtest import FSYNC, TIMING
from pgstrata.errors import HostLostError, HostNotFitError, PgstrataError
from pgstrata.hosts.clock import measure_clock
from pgstrata.hosts.elf import HEADER, foreign_architecture
from pgstrata.hosts.local import LocalHost
from pgstrata.model.doctor import Examination
from pgstrata.ports.host import Command
from pgstrata.servers.supply import installed_prefixes

# What a killed doctor left is older than any that is at work.
_MAKE: Final = """
find "${TMPDIR:-/tmp}" -maxdepth 1 -name 'pgstrata-doctor.*' -user "$(id -u)" -mmin +10 -exec rm -rf {} + 2>/dev/null
folder=$(mktemp -d "${TMPDIR:-/tmp}/pgstrata-doctor.XXXXXX") && chmod 711 "$folder" && printf '%s\n' "$folder"
"""


def examine_host(host: str | None) -> Examination:
    """This machine, or the one that `--host` names, as the user that ssh logs in as.

    Raises:
        UsageError: that is no destination, or a variable of the environment over there names no usable folder.
        HostNotFitError: ssh cannot log in there (host key, permission), or a program is missing there.
        HostLostError: it cannot be reached, or the connection broke.
    """
    destination = named_destination(host)
    if destination is None:
        return examine_here()
    clock = SystemClock()
    with open_site(destination) as site:
        connection = tuple(
            guard(
                "clock_offset", "clock and round trip", lambda: judge_connection(measure_clock(site.transport, clock))
            )
        )
        with with_programs(site, find_installations_there(site)) as installations:
            found = examine(site, clock, installations)
    return replace(found, probes=(*connection, *found.probes))


def find_installations_there(site: Site) -> Installations:
    """What is fetched here and can be sent there, and what is installed there."""
    installed, here = installed_prefixes(site.transport), os.uname().machine
    if site.machine != here:
        lack = f"that host is {site.machine}, and this machine has programs for {here}: install PostgreSQL there"
        return Installations(fetched={}, installed=installed, lack=lack, sent="")
    with closing(LocalHost()) as local:
        found = find_installations(local, find_machine_places().cache, here)
    return replace(found, installed=installed, sent="")


@contextmanager
def with_programs(site: Site, installations: Installations) -> Iterator[Installations]:
    """With programs of this machine over there where none are installed; they are removed at the end."""
    if installations.installed or not installations.fetched:
        yield installations
        return
    folder = site.transport.run(Command(argv=("sh", "-c", _MAKE))).text.strip()
    try:
        try:
            _send(site, next(iter(installations.fetched.values())), folder)
        except HostLostError:
            raise
        except PgstrataError as error:
            yield replace(installations, unsent=f"its program cannot be sent: {error.what}")
        else:
            yield replace(installations, sent=folder)
    finally:
        site.transport.remove_tree(folder)


def _send(site: Site, prefix: str, folder: str) -> None:
    """Both programs, which need no library but those of every system; root there runs them as another user."""
    site.transport.make_folder(f"{folder}/bin", mode=0o755)
    with closing(LocalHost()) as local:
        for program in (FSYNC, TIMING):
            content = local.read(f"{prefix}/bin/{program}")
            if built_for := foreign_architecture(content[:HEADER], site.machine):
                raise HostNotFitError(f"{program} is a program for {built_for}, and that host is {site.machine}")
            site.transport.write(f"{folder}/bin/{program}", content, mode=0o755)
