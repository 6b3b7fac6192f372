"""A study read for showing: no lock, no write, also while another process is measuring."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from pgstrata.model.metrics import BACKGROUND_LOAD
from pgstrata.model.server import Fingerprint
from pgstrata.model.study import Study
from pgstrata.sources.ladders import LADDERS, cut_ladders
from pgstrata.sources.rates import MAXIMA, RATES
from pgstrata.store import catalogue
from pgstrata.store.details import load_query_plans
from pgstrata.store.failures import catalogue_errors
from pgstrata.store.study import load_plan_file

_NOTHING = Fingerprint(facts={})


def load_study(
    folder: Path,
    *,
    metrics: Sequence[str] | None = None,
    series: bool | Collection[str] = False,
    sessions: bool = False,
) -> Study:
    """Everything measured so far, with the primary and the named metrics only (None: all).

    The background load is always there: without it nobody knows in which blocks it differed.

    `series`: those of the same metrics (True), none (False), or those of the metrics named. `sessions`: what sessions
    were seen doing, too.
    """
    folder = folder.absolute()
    file = load_plan_file(folder)
    if metrics is not None:
        metrics = tuple(dict.fromkeys((file.plan.experiment.metric, BACKGROUND_LOAD, *metrics)))
    with catalogue_errors(folder), catalogue.open_for_reading(folder / catalogue.CATALOGUE) as connection:
        runs = catalogue.load_runs(connection, metrics=metrics, series=series, sessions=sessions)
        fingerprints = catalogue.load_fingerprints(connection)
        query_plans = load_query_plans(connection)
        plan, beyond = cut_ladders(file.plan, fingerprints.get(LADDERS))
        rates, maxima = (_numbers(fingerprints.get(name, _NOTHING)) for name in (RATES, MAXIMA))
        planned = {run.identity: (run.block, run.environment, run.cell) for run in file.plan.runs}
        for run in runs:
            if planned.get(run.identity) != (run.block, run.environment, run.cell):
                raise ValueError(f"run {run.identity} is not of the plan")
    return Study(
        name=folder.resolve().name,
        plan=plan,
        runs=runs,
        host=fingerprints.get("host", _NOTHING),
        client=fingerprints.get("client", _NOTHING),
        environments=_below(fingerprints, "environment/"),
        created=file.created,
        version=file.version,
        networks=_below(fingerprints, "network/"),
        rates=rates,
        maxima=maxima,
        beyond=beyond,
        query_plans=query_plans,
    )


def _numbers(fingerprint: Fingerprint) -> dict[str, float]:
    return {name: float(value) for name, value in fingerprint.facts.items()}


def _below(fingerprints: Mapping[str, Fingerprint], folder: str) -> dict[str, Fingerprint]:
    return {name.removeprefix(folder): found for name, found in fingerprints.items() if name.startswith(folder)}
