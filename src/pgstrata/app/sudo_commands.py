"""What pgstrata would run with sudo on a host, for an ordinary user who wants to know before allowing it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from pgstrata.app.site import Site
from pgstrata.layers.privileged import Ground, files_of, programs_in, programs_of
from pgstrata.layers.registry import privileged_changes
from pgstrata.ledger.entries import own_commands
from pgstrata.model.abilities import Abilities
from pgstrata.model.changes import Change
from pgstrata.model.doctor import Elevated, LayerFinding, Possible
from pgstrata.system.commands import holding

_LEDGER: Final = "every one"
_BEFORE: Final = "BEFORE"
_UNIFIED: Final = 2


def list_elevated(site: Site, abilities: Abilities, layers: Iterable[LayerFinding]) -> tuple[Elevated, ...]:
    """The commands with sudo for the factors that this host has; none where the user is root."""
    if not site.privilege:
        return ()
    keys = {one.key for one in layers if one.possible in {Possible.YES, Possible.NOT_FOR_USER}}
    ground = Ground(storage=site.places.storage, user=site.transport.user, cgroup=_version(abilities))
    wanted = [(key, change) for key, change in privileged_changes(ground) if key in keys]
    changes = (_changing(site, key, change) for key, change in wanted)
    return (*_keeping(site), *changes) if wanted else ()


def _version(abilities: Abilities) -> int:
    unified = (mount for mount in abilities.cgroups if mount.version == _UNIFIED and mount.writable)
    return _UNIFIED if any(mount.controllers & {"cpu", "memory", "io"} for mount in unified) else 1


def _keeping(site: Site) -> Iterator[Elevated]:
    for argv in own_commands(site.ledger):
        yield Elevated(
            key=_LEDGER,
            what=f"the ledger, {site.ledger}",
            programs=programs_in("\n".join(argv)),
            do=(*site.privilege, *argv),
        )


def _changing(site: Site, key: str, change: Change) -> Elevated:
    entry = f"{site.ledger}/00000000.json"
    return Elevated(
        key=key,
        what=", ".join((change.what, *files_of(change))),
        programs=programs_of(change),
        do=(*site.privilege, *holding(entry, change.do).argv),
        undo=(*site.privilege, *holding(entry, change.undo.with_argument(_BEFORE)).argv),
    )
