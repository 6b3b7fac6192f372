"""From a study to its answer, and to the forms in which it is shown."""

from __future__ import annotations

from pathlib import Path

from pgstrata.compare import SECONDARY_METRICS, compare_study, undeclared_differences
from pgstrata.model.answer import Answer
from pgstrata.store.load import load_study

SHOWN = ("wal_per_tx", "checkpoints", "autovacuums", "client_share", "server_cpu", "client_cpu", "foreign_cpu")


def load_answer(study: Path, *, series: bool = False) -> Answer:
    """The study with its comparisons; only what is compared or shown is read."""
    loaded = load_study(study, metrics=(*SECONDARY_METRICS, *SHOWN), series=series)
    return Answer(
        study=loaded,
        comparisons=compare_study(loaded.plan, loaded.runs),
        warnings=undeclared_differences(loaded.environments, loaded.plan.experiment),
    )
