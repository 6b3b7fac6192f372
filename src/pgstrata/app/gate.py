"""A study judged as a gate, by what its plan froze or by something else."""

from __future__ import annotations

from dataclasses import replace

from pgstrata.app.answer import load_answer
from pgstrata.compare import compare_study, threshold_of
from pgstrata.compare.environments.builds import doubt_builds
from pgstrata.compare.gate import Gate, find_missing
from pgstrata.compare.headlines import doubt_equivalences
from pgstrata.errors import UsageError
from pgstrata.model.answer import Answer
from pgstrata.model.metrics import COMPARED_SERIES, METRICS, ROUND_TPS
from pgstrata.ports.studies import StoredStudy


def load_gate(study: StoredStudy, *, metric: str | None, threshold: float | None) -> Gate:
    """The gate of a study; without a threshold the metric is asked at its own, as the answer shows it.

    Raises:
        UsageError: the metric is unknown, the study has no values of it, or its values are declared.
    """
    answer = load_answer(study)
    experiment = answer.study.plan.experiment
    if experiment.synthetic is not None:
        raise UsageError(
            "the values of this study are declared, not measured: a gate would say nothing about the server",
            where=str(study),
            remedy="take [synthetic] out of the experiment, and measure",
        )
    frozen = (experiment.metric, experiment.threshold)
    primary = metric or experiment.metric
    asked = (primary, threshold or threshold_of(experiment, primary))
    if asked == frozen:
        return Gate(answer=answer, frozen=frozen, missing=find_missing(answer))
    return Gate(answer=_ask_again(study, answer, *asked), frozen=frozen, missing=find_missing(answer))


def _ask_again(study: StoredStudy, answer: Answer, metric: str, threshold: float) -> Answer:
    """The same runs by another metric or threshold; the floors of the plan are those of its own metric."""
    # throughput in slices is compared by the series of its rounds
    loaded = study.load(metrics=(_known(metric), ROUND_TPS), series=COMPARED_SERIES)
    frozen = loaded.plan.experiment
    measured = {measurement.metric for run in loaded.runs for measurement in run.measurements}
    if metric not in {frozen.metric, *measured}:
        raise UsageError(f"the study has no values of {metric}", where="--metric", remedy=_list_metrics(study))
    plan = replace(
        loaded.plan,
        experiment=replace(frozen, metric=metric, threshold=threshold),
        floors=loaded.plan.floors if metric == frozen.metric else {},
    )
    judged = replace(loaded, plan=plan)
    comparisons = doubt_builds(compare_study(plan, loaded.runs, metrics=()), judged)
    former = doubt_equivalences(answer.comparisons)
    kept = (doubt for doubt in answer.warnings if doubt not in former)
    return Answer(study=judged, comparisons=comparisons, warnings=(*kept, *doubt_equivalences(comparisons)))


def _known(metric: str) -> str:
    if metric not in METRICS:
        raise UsageError(
            f"there is no metric {metric!r}", where="--metric", remedy=f"choose one of {', '.join(METRICS)}"
        )
    return metric


def _list_metrics(study: StoredStudy) -> str:
    measured = {item.metric for run in study.load().runs for item in run.measurements}
    return f"choose one of {', '.join(name for name in METRICS if name in measured)}" if measured else "measure first"
