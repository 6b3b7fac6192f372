"""A study that goes on by itself after each reboot of this machine: a systemd unit gives the command again."""

from __future__ import annotations

import os
import pwd
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pgstrata.app.host import make_ledger
from pgstrata.app.places import study_key
from pgstrata.app.site import OpenedHost
from pgstrata.app.study_hosts import StudyHosts
from pgstrata.conduct.rig import to_the_end
from pgstrata.errors import HostNotFitError, UsageError
from pgstrata.ledger.entries import host_state
from pgstrata.ledger.ledger import restore
from pgstrata.ledger.undo import read_state
from pgstrata.model.changes import Entry
from pgstrata.model.experiment import HostSpec
from pgstrata.ports.host import Host
from pgstrata.system.trust import ROOT, require_root_keeps
from pgstrata.system.units import UNIT, Repeated, unit_change, unquotable

_RUNNING: Final = "/run/systemd/system"
"""There if systemd is the first process (sd_booted(3))."""
_KEPT: Final = ("HOME", "LANG", "LC_ALL", "PATH")
_ROOT_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PREFIXES: Final = ("PGSTRATA_", "XDG_CACHE", "XDG_STATE")


def unit_of(study: str) -> str:
    """The name of the unit of a study."""
    return f"pgstrata-resume-{study_key(study)}.service"


def own_unit(entry: Entry, study: str) -> bool:
    """Whether an entry of the ledger is the unit of this study."""
    return entry.what == f"{UNIT} {unit_of(study)}"


def repeat_command(study: str, file: Path, arguments: Sequence[str]) -> Repeated:
    """This command, to be given again after each boot.

    Args:
        study: identity of the study.
        file: of the experiment.
        arguments: those of `pgstrata` on the command line.

    Raises:
        UsageError: it cannot be given again: its folder or its user is unknown, or a text cannot stand in a unit.
    """
    try:
        folder, user = Path.cwd(), pwd.getpwuid(os.getuid()).pw_name
    except (OSError, KeyError):
        raise UsageError(
            "the current folder no longer exists, or this user has no name",
            where="--resume-after-boot",
            remedy="give the command in a folder that exists, as a user of /etc/passwd; or use --reboot",
        ) from None
    variables = {name: value for name, value in os.environ.items() if name in _KEPT or name.startswith(_PREFIXES)}
    if os.getuid() == 0:
        # nothing that somebody else has put into a folder of root's PATH
        variables["PATH"] = _ROOT_PATH
    repeated = Repeated(
        name=unit_of(study),
        # no module is taken from the present folder, nor from one of the user's home
        command=(sys.executable, "-P", "-s", "-m", "pgstrata", *arguments),
        folder=str(folder),
        user=user,
        variables=variables,
        trusted=(str(folder), os.path.normpath(file.absolute()), sys.executable, str(Path(__file__).parents[1])),
    )
    if wrong := unquotable((*repeated.command, repeated.folder, *variables.values())):
        raise UsageError(
            f"a systemd unit cannot contain this text: {wrong!r}",
            where="--resume-after-boot",
            remedy="use names without line breaks and other control characters, or --reboot",
        )
    return repeated


@contextmanager
def resuming(hosts: StudyHosts, repeated: Repeated | None) -> Iterator[None]:
    """Install the unit of a study; remove it, also an earlier command's, unless a reboot has to follow.

    Raises:
        HostNotFitError: this machine has no systemd, or somebody else could change what root would run at each boot.
    """
    opened = hosts[HostSpec()]
    ledger = make_ledger(opened.site, hosts.machine.clock, hosts.study)
    present = _find_units(opened, hosts.study)
    if repeated is not None:
        _require_systemd(opened.transport)
        _require_kept(opened.transport, repeated)
        change = unit_change(repeated)
        if not (present and read_state(opened.transport, change.what, change.read) == change.value):
            # one that was only begun, or is of another command, is made anew
            _remove_units(opened, hosts.study)
            ledger.change(change)
    try:
        yield
    finally:
        if hosts.next_boot is None:
            to_the_end(lambda: ledger.undo_to(0))
            to_the_end(lambda: _remove_units(opened, hosts.study))


def _find_units(opened: OpenedHost, study: str) -> bool:
    site = opened.site
    if not site.transport.exists(site.ledger):
        return False
    return any(own_unit(entry, study) for entry in host_state(site.transport, site.ledger).entries)


def _remove_units(opened: OpenedHost, study: str) -> None:
    """Remove what earlier commands of this study have left; whoever changed it meanwhile, it is the study's own."""
    if _find_units(opened, study):
        site = opened.site
        restore(site.transport, site.privilege, site.ledger, force=True, keep=lambda entry: not own_unit(entry, study))


def _require_systemd(host: Host) -> None:
    if not host.exists(_RUNNING):
        raise HostNotFitError(
            "systemd does not run on this machine",
            where="--resume-after-boot",
            remedy="use --reboot, and give the same command again after each boot",
        )


def _require_kept(host: Host, repeated: Repeated) -> None:
    """HostNotFitError if another user could replace files or folders that root's unit uses at each boot."""
    if host.user != ROOT:
        return
    for path in repeated.trusted:
        require_root_keeps(host, path, remedy="move it to where root alone can write, then run from there")
