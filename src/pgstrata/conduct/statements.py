"""Single statements of a workload, before a run: their plans, and what is needed to count them and their waits.

It is done while the data are as they were cloned, so that the costs in the plans are the same each time.
"""

from __future__ import annotations

from pgstrata.conduct.arm import FATAL, ActiveArm, make_load, step
from pgstrata.conduct.rig import Rig
from pgstrata.errors import PgstrataError
from pgstrata.model.reasons import Notice
from pgstrata.ports.collector import PLANS, Prepares
from pgstrata.ports.server import RunningServer


def look_at_statements(rig: Rig, arm: ActiveArm, server: RunningServer) -> None:
    """Plans as evidence of the run; a run is never lost for want of them."""
    if rig.explainer is None and not rig.samplers:
        return
    with step(rig, arm, "plans"):
        try:
            for each in (*rig.collectors, *rig.samplers):
                if isinstance(each, Prepares):
                    each.prepare(rig.subject(server))
            if rig.explainer is None:
                return
            load = make_load(rig, arm, server, seconds=0, seed=0)
            statements = rig.driver(arm.environment, arm.cell).statements(load)
            arm.keep(PLANS, rig.explainer.capture(rig.subject(server), statements, arm.cell.protocol))
        except FATAL:
            raise
        except PgstrataError as error:
            rig.warn(Notice(code="no_plans", names=(arm.planned.identity,), said=error.what))
