"""Levels asserted from inside, and the fingerprint of an environment remembered from its first start on."""

from __future__ import annotations

from typing import Final

from pgstrata.compare.changes import changed_facts
from pgstrata.compare.differences import is_volatile
from pgstrata.conduct.arm import Arm
from pgstrata.conduct.ceiling import client_facts
from pgstrata.conduct.rig import Rig
from pgstrata.model.runs import Reason
from pgstrata.model.server import Fingerprint
from pgstrata.ports.server import RunningServer

_NAMED: Final = 5
# Values that may hold a password of somebody's are masked by the server itself, before they are anywhere else.
_SETTINGS_SQL: Final = (
    "SELECT name, CASE WHEN name ~ '(conninfo|_command|pass)' AND setting <> '' THEN '********' ELSE setting END "
    "AS setting, coalesce(unit, '') AS unit, source, coalesce(boot_val, '') AS boot_val FROM pg_settings ORDER BY name"
)


def assert_levels(rig: Rig, arm: Arm, server: RunningServer) -> None:
    """Every factor seen from inside; all settings kept. LevelNotTakenError where one is not there."""
    arm.facts.update(rig.host_fingerprint.facts)
    arm.facts.update({f"driver.{key}": value for key, value in rig.driver.facts().items()})
    for layer in rig.layers:
        arm.facts.update(layer.observe(server, rig.sql))
    table = rig.sql.query(server.address, _SETTINGS_SQL)
    arm.files["settings.tsv"] = "".join("\t".join(row) + "\n" for row in (table.columns, *table.rows)).encode()
    arm.facts.update({f"settings.{row['name']}": row["setting"] for row in table.records()})
    _note_changed_fingerprint(rig, arm)
    # after the comparison: environments do not differ by what the client was found to do
    arm.facts.update(client_facts(rig, arm))


def _note_changed_fingerprint(rig: Rig, arm: Arm) -> None:
    """The first fingerprint of a study stays; a run that differs from it, also after a resume, is invalid."""
    steady = {key: value for key, value in arm.facts.items() if not is_volatile(key)}
    name = f"environment/{arm.environment.name}"
    first = rig.store.fingerprint(name)
    if first is None:
        rig.store.keep_fingerprint(name, Fingerprint(facts=steady))
        return
    changed = changed_facts(first.facts, steady)
    if changed:
        more = f" and {len(changed) - _NAMED} more" if len(changed) > _NAMED else ""
        text = f"the environment is not what it was in its first run: {'; '.join(changed[:_NAMED])}{more}"
        arm.remarks.append(Reason(code="fingerprint_changed", text=text))
