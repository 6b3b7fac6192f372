"""Levels asserted from inside, and the fingerprint of an environment remembered from its first start on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pgstrata.compare.environments.changes import changed_facts
from pgstrata.compare.environments.differences import is_volatile
from pgstrata.conduct.arm import ActiveArm
from pgstrata.conduct.ceiling import client_facts
from pgstrata.conduct.rig import Rig
from pgstrata.model.clocks import ClockOffset
from pgstrata.model.driver import DEFAULT_DRIVER
from pgstrata.model.experiment import HERE, digests, name_hosts
from pgstrata.model.old_servers import BOOT_VALUE_SINCE
from pgstrata.model.reasons import Reason
from pgstrata.model.server import Fingerprint
from pgstrata.ports.driver import Driver
from pgstrata.ports.server import RunningServer

_NAMED: Final = 5
_OF_DATA: Final = ("settings.", "asked.")
# Values that may hold a password of somebody's are masked by the server itself, before they are anywhere else.
_SETTINGS_SQL: Final = (
    "SELECT name, CASE WHEN name ~ '(conninfo|_command|pass)' AND setting <> '' THEN '********' ELSE setting END "
    "AS setting, coalesce(unit, '') AS unit, source, {built_in} AS boot_val FROM pg_settings ORDER BY name"
)


def _built_in(version: int) -> str:
    """An expression for the built-in default of a setting, which servers show from 8.4 on."""
    return "coalesce(boot_val, '')" if not version or version >= BOOT_VALUE_SINCE else "''::text"


def assert_levels(rig: Rig, arm: ActiveArm, server: RunningServer) -> None:
    """Every factor seen from inside; all settings kept. LevelNotTakenError where one is not there."""
    home = rig.server_host(arm.environment)
    arm.facts.update(home.fingerprint.facts)
    side = rig.side(arm.environment)
    if arm.environment.client_hosts != HERE:
        arm.facts["client.host"] = name_hosts(arm.environment.client_hosts)
    if arm.environment.apart:
        arm.facts.update(of_client(side.fingerprint))
    arm.facts.update(_driver_facts(side.drivers))
    for layer in (*rig.layers, *home.layers):
        arm.facts.update(layer.observe(server, side.sql))
    table = side.sql.query(server.address, _SETTINGS_SQL.format(built_in=_built_in(server.build.version.number)))
    arm.files["settings.tsv"] = "".join("\t".join(row) + "\n" for row in (table.columns, *table.rows)).encode()
    arm.facts.update({f"settings.{row['name']}": row["setting"] for row in table.records()})
    _note_changed_fingerprint(rig, arm)
    # after the comparison: environments do not differ by what the client was found to do, nor by the network's mood
    arm.facts.update(client_facts(rig, arm))
    arm.facts.update({f"checkout.{name}.sha256": value for name, value in digests(arm.cell.checkout).items()})
    if (clocks := rig.link(arm.environment).clocks) is not None:
        arm.facts.update(say_clocks(clocks))


def _driver_facts(drivers: Mapping[str, Driver]) -> Mapping[str, str]:
    """Facts of all drivers of the study, so that an environment is the same in all its cells.

    Names contain the key of a driver only where the study has several.
    """
    usual = DEFAULT_DRIVER if DEFAULT_DRIVER in drivers else next(iter(sorted(drivers)))
    return {
        f"driver.{fact}" if key == usual else f"driver.{key}.{fact}": value
        for key, driver in sorted(drivers.items())
        for fact, value in driver.facts().items()
    }


def of_client(fingerprint: Fingerprint) -> Mapping[str, str]:
    """Facts of the client's machine, named apart from those of the server's: client.cpus, client.kernel."""
    return {f"client.{name.removeprefix('host.')}": value for name, value in fingerprint.facts.items()}


def say_clocks(clocks: ClockOffset) -> Mapping[str, str]:
    """The offset of the server host's clock, how wrong that may be, and the round-trip time; seconds as text."""
    trip = {} if clocks.round_trip is None else {"network.round_trip": f"{clocks.round_trip:.6f}"}
    return {
        "network.clock_offset": f"{clocks.offset_seconds:.6f}",
        "network.clock_uncertainty": f"{clocks.uncertainty:.6f}",
        **trip,
    }


def _note_changed_fingerprint(rig: Rig, arm: ActiveArm) -> None:
    """The first fingerprint of a study stays; a run that differs from it, also after a resume, is invalid.

    Settings may belong to the data of one cell (ALTER DATABASE in its `setup_sql`), and are compared within that cell.
    """
    now = {key: value for key, value in arm.facts.items() if not is_volatile(key)}
    first = _first(rig, f"environment/{arm.environment.name}", now)
    settings = _first(rig, f"settings/{arm.environment.name}/{arm.cell.identity}", _settings_of(now))
    fixed = {key: value for key, value in first.items() if not key.startswith(_OF_DATA)}
    changed = changed_facts({**fixed, **settings}, now)
    if changed:
        left = max(0, len(changed) - _NAMED)
        how = "more" if left else ""
        arm.remarks.append(Reason(code="fingerprint_changed", how=how, names=changed[:_NAMED], value=left))


def _settings_of(facts: Mapping[str, str]) -> Mapping[str, str]:
    return {key: value for key, value in facts.items() if key.startswith(_OF_DATA)}


def _first(rig: Rig, name: str, now: Mapping[str, str]) -> Mapping[str, str]:
    """What was remembered under that name; what is now, if nothing was."""
    known = rig.store.fingerprint(name)
    if known is None:
        rig.store.keep_fingerprint(name, Fingerprint(facts=now))
        return now
    return known.facts
