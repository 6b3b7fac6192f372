"""The runs of an experiment as observations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from pgstrata.model.metrics import BACKGROUND_LOAD, TPS
from pgstrata.model.observation import Observation, PairingKey, TimeSpan
from pgstrata.model.runs import RunRecord, RunStatus, Validity
from pgstrata.sources.seconds import opening_of

COMPANIONS: Final = frozenset({"checkpoints", "autovacuums", "wal_per_tx"})
"""What must be alike in both arms, or be said."""
_ALWAYS: Final = COMPANIONS | {BACKGROUND_LOAD}


def observe_runs(runs: Sequence[RunRecord], metrics: frozenset[str]) -> list[Observation]:
    """What the runs measured by these metrics, and what happened beside them."""
    return [_observe(run, metrics) for run in runs]


def may_enter(run: RunRecord) -> bool:
    """Whether a run may be part of an estimate."""
    return run.status is RunStatus.COMPLETED and run.validity is not Validity.INVALID


def _observe(run: RunRecord, metrics: frozenset[str]) -> Observation:
    measured: dict[str, float] = {}
    for found in run.measurements:
        if found.metric in metrics or found.metric in _ALWAYS:
            measured.setdefault(found.metric, found.value)
    rounds = None
    if run.together and TPS.name in metrics:
        # The catalogue keeps series in single precision: a run that was just derived must give the same difference.
        rounds = tuple(np.array(run.rounds(), dtype=np.float32).tolist())
    return Observation(
        target=run.environment,
        cell=run.cell,
        measurements=measured,
        provenance=run.identity,
        key=PairingKey(number=run.block, label=str(run.block), together=run.together),
        span=TimeSpan(started=run.started, seconds=run.measured_seconds),
        validity=run.validity if run.status is RunStatus.COMPLETED else Validity.INVALID,
        collapsed=run.status is RunStatus.COLLAPSED,
        rounds=rounds,
        opening=opening_of(run) if TPS.name in metrics else None,
    )
