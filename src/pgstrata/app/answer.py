"""From a study to its answer, and to the forms in which it is shown."""

from __future__ import annotations

from pgstrata.app.redaction import hide_texts
from pgstrata.compare import (
    SECONDARY_METRICS,
    compare_pairs,
    compare_study,
    find_axes,
    find_effects,
    find_shifts,
    undeclared_differences,
)
from pgstrata.compare.anomalies import find_anomalies
from pgstrata.compare.causes.why import WHY_METRICS, find_why
from pgstrata.compare.environments.builds import doubt_builds
from pgstrata.compare.environments.surroundings import surrounding_warnings
from pgstrata.compare.environments.unobserved import unseen_warnings
from pgstrata.model.answer import Answer
from pgstrata.model.metrics import COMPARED_SERIES, LATENCY_QUANTILES, ROUND_TPS, SAMPLED_CPU
from pgstrata.ports.studies import StoredStudy
from pgstrata.report.figures.meanwhile import MEANWHILE

SHOWN = ("wal_per_tx", "checkpoints", "autovacuums", "client_share", "server_cpu", "client_cpu", "foreign_cpu")


def load_answer(
    study: StoredStudy, *, series: bool = False, shifts: bool = False, pairs: bool = False, why: bool = False,
    query_text: bool = True,
) -> Answer:  # fmt: skip
    """The study with its comparisons; only what is compared or shown is read.

    With `series` also what was measured by the second, with `shifts` all percentiles of latency, compared; with `pairs`
    every environment is compared with every other; with `why` the differences are split into what time was spent on.
    Without `query_text` hashes stand for texts of queries.
    """
    beside = (*(LATENCY_QUANTILES if shifts else ()), *((*WHY_METRICS, SAMPLED_CPU) if why else ()))
    metrics = (*SECONDARY_METRICS, *SHOWN, ROUND_TPS, *beside)
    lines: tuple[str, ...] = COMPARED_SERIES
    if series:
        lines = (study.head().plan.experiment.metric, *COMPARED_SERIES, *MEANWHILE)
    loaded = study.load(metrics=metrics, series=lines, sessions=why)
    loaded = loaded if query_text else hide_texts(loaded)
    found = find_why(loaded.plan, loaded.runs) if why else None
    return Answer(
        study=loaded,
        comparisons=doubt_builds(compare_study(loaded.plan, loaded.runs), loaded),
        warnings=(
            *undeclared_differences(loaded.environments, loaded.plan.experiment),
            *surrounding_warnings(loaded),
            *unseen_warnings(loaded),
        ),
        effects=find_effects(loaded.plan, loaded.runs),
        axes=find_axes(loaded.plan, loaded.runs),
        anomalies=find_anomalies(loaded.plan, loaded.runs),
        shifts=find_shifts(loaded.plan, loaded.runs) if shifts else (),
        pairs=doubt_builds(compare_pairs(loaded.plan, loaded.runs), loaded) if pairs else (),
        attributions=found.attributions if found else (),
        unattributed=found.missing if found else (),
        accounts=found.accounts if found else (),
    )
