"""From a study to its answer, and to the forms in which it is shown.

To be shown to others it may go without texts of queries: hashes stand for them, the same ones that `query_text = false`
keeps.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from pgstrata.app.price_list import read_price_list
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
from pgstrata.compare.by_load import find_by_load
from pgstrata.compare.causes.why import WHY_METRICS, find_why
from pgstrata.compare.courses import LOOKED_AT
from pgstrata.compare.cpu import find_by_cpu
from pgstrata.compare.environments.builds import doubt_builds
from pgstrata.compare.environments.surroundings import surrounding_warnings
from pgstrata.compare.environments.unobserved import unseen_warnings
from pgstrata.compare.headlines import doubt_equivalences
from pgstrata.compare.statements import find_statement_shifts
from pgstrata.compare.trends import find_trends
from pgstrata.compare.worth import find_worth
from pgstrata.diagnosis.query_text import hash_query, is_hash, normalise
from pgstrata.errors import UsageError
from pgstrata.experiment.prices import assign_prices
from pgstrata.model.activity import NO_QUERIES
from pgstrata.model.answer import Answer
from pgstrata.model.metrics import COMPARED_SERIES, LATENCY_QUANTILES, ROUND_TPS, SAMPLED_CPU
from pgstrata.model.queries import QueryCounts
from pgstrata.model.runs import RunRecord, StatementLatency
from pgstrata.model.study import Study
from pgstrata.ports.studies import StoredStudy


def hide_texts(study: Study) -> Study:
    """The study without any text of a query: sampled, counted or given by the driver's scripts; and without plans.

    The experiment stays as its author wrote it, with its scripts.
    """
    return replace(study, runs=tuple(map(_hide_run, study.runs)), query_plans=())


def _hide_run(run: RunRecord) -> RunRecord:
    return replace(
        run,
        sessions=tuple(
            replace(count, query=_hash(count.query), blocker=_hash(count.blocker)) for count in run.sessions
        ),
        processes=tuple(replace(count, query=_hash(count.query)) for count in run.processes),
        statements=tuple(replace(each, text=_hide_statement(each)) for each in run.statements),
        query_plans=(),
        queries=None if run.queries is None else _hide_counts(run.queries),
    )


def _hide_statement(statement: StatementLatency) -> str:
    """Its name is its author's and stays."""
    hidden = _hash(statement.text)
    return f"/* {statement.name} */ {hidden}" if statement.name else hidden


def _hide_counts(counts: QueryCounts) -> QueryCounts:
    return replace(counts, queries=tuple(replace(count, query=_hash(count.query)) for count in counts.queries))


@lru_cache(maxsize=4096)
def _hash(text: str) -> str:
    """A text that is a hash already, because no other was kept, stays."""
    return text if is_hash(text) or text in NO_QUERIES else hash_query(normalise(text))


SHOWN = (
    "wal_per_tx",
    "new_orders",
    "power",
    "checkpoints",
    "autovacuums",
    "client_share",
    "server_cpu",
    "client_cpu",
    "foreign_cpu",
)


def load_answer(
    study: StoredStudy, *, series: bool = False, shifts: bool = False, pairs: bool = False, why: bool = False,
    query_text: bool = True, prices: Path | None = None,
) -> Answer:  # fmt: skip
    """The study with its comparisons; only what is compared or shown is read.

    With `series` also what was measured by the second, with `shifts` all percentiles of latency, compared; with `pairs`
    every environment is compared with every other; with `why` the differences are split into what time was spent on.
    Without `query_text` hashes stand for texts of queries. `prices` is a list that is used instead of the plan's.
    """
    beside = (*(LATENCY_QUANTILES if shifts else ()), *((*WHY_METRICS, SAMPLED_CPU) if why else ()))
    metrics = (*SECONDARY_METRICS, *SHOWN, ROUND_TPS, *beside)
    lines: tuple[str, ...] = COMPARED_SERIES
    if series:
        lines = (study.head().plan.experiment.metric, *COMPARED_SERIES, *LOOKED_AT)
    loaded = study.load(metrics=metrics, series=lines, sessions=why)
    loaded = loaded if query_text else hide_texts(loaded)
    loaded = loaded if prices is None else with_prices(loaded, prices)
    found = find_why(loaded.plan, loaded.runs) if why else None
    comparisons = doubt_builds(compare_study(loaded.plan, loaded.runs), loaded)
    return Answer(
        study=loaded,
        comparisons=comparisons,
        warnings=(
            *undeclared_differences(loaded.environments, loaded.plan.experiment),
            *surrounding_warnings(loaded),
            *unseen_warnings(loaded),
            *doubt_equivalences(comparisons),
        ),
        effects=find_effects(loaded.plan, loaded.runs),
        axes=find_axes(loaded.plan, loaded.runs),
        load_findings=find_by_load(loaded.plan, loaded.runs),
        load_trends=find_trends(loaded.plan, loaded.runs),
        anomalies=find_anomalies(loaded.plan, loaded.runs),
        shifts=find_shifts(loaded.plan, loaded.runs) if shifts else (),
        statement_shifts=find_statement_shifts(loaded.plan, loaded.runs),
        pairs=doubt_builds(compare_pairs(loaded.plan, loaded.runs), loaded) if pairs else (),
        attributions=found.attributions if found else (),
        unattributed=found.missing if found else (),
        accounts=found.accounts if found else (),
        cpu_findings=find_by_cpu(loaded.plan, loaded.runs, comparisons),
        worth=find_worth(loaded),
    )


def with_prices(study: Study, file: Path) -> Study:
    """The study with the prices of a list; UsageError if one is not valid, or is for nothing in the study."""
    experiment = study.plan.experiment
    found, unknown = assign_prices(read_price_list(file), experiment.environments)
    if unknown:
        names = ", ".join(dict.fromkeys(each.host.text for each in experiment.environments))
        raise UsageError(
            f"{unknown[0]!r:.80} is neither a host nor an environment of this study",
            where=str(file),
            remedy=f"name one of its hosts ({names}) or environments "
            f"({', '.join(each.name for each in experiment.environments)})",
        )
    return replace(study, plan=replace(study.plan, experiment=replace(experiment, prices=found)))
