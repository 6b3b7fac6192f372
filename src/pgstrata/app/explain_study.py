"""`pgstrata explain STUDY`: two environments of a study, explained like windows of a recorded server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from pgstrata.app.answer import hide_texts
from pgstrata.app.opened import open_study
from pgstrata.compare.causes.run_windows import make_run_window, shared_runs
from pgstrata.diagnosis.live.explain import explain_runs
from pgstrata.errors import StudyError, UsageError
from pgstrata.model.archive import HOST_RATES, SERVER_RATES, ArchiveFacts
from pgstrata.model.experiment import Cell, Experiment
from pgstrata.model.explanation import Chosen, Explained
from pgstrata.model.metrics import ROUND_TPS, TPS
from pgstrata.report.sentences.names import name_both
from pgstrata.store.archives.schema import ARCHIVE
from pgstrata.store.study import PLAN_FILE

_SERIES: Final = (ROUND_TPS, *SERVER_RATES, *HOST_RATES)


def is_study(path: Path) -> bool:
    """Whether a path is one of a study or bundle rather than of an archive."""
    return not (path / ARCHIVE).exists() and (path.is_file() or (path / PLAN_FILE).is_file())


def explain_study(
    path: Path, environment: str | None, against: str | None, cell: str | None, *, query_text: bool = True
) -> Explained:
    """Explain an environment of a study by another one.

    Args:
        path: of the study or bundle.
        environment: its name; None where there is only one beside the one it is compared with.
        against: the name of that one; None for the baseline.
        cell: its identity; None where there is only one.
        query_text: whether texts of statements are shown.

    Raises:
        StudyError: there is none, or nothing was sampled in both environments.
        UsageError: a name is not in the study, or has to be chosen.
    """
    with open_study(path) as opened:
        study = opened.load(metrics=(TPS.name,), series=_SERIES, sessions=True)
    study = study if query_text else hide_texts(study)
    experiment = study.plan.experiment
    reference = _choose_environment(experiment, against or experiment.baseline, "--against", without="")
    name = _choose_environment(experiment, environment, "--environment", without=reference)
    chosen = _choose_cell(experiment, cell)
    sides = shared_runs(study.runs, chosen.identity, name, reference)
    if not all(sides):
        raise StudyError(
            f"there is no block in which sessions of both {name} and {reference} were sampled in {chosen.identity}",
            where=str(path),
            remedy="measure more blocks, with `diagnosis = true`",
        )
    ours, theirs = (
        make_run_window(runs, chosen, [use for use in study.query_plans if (use.environment, use.cell) == place])
        for runs, place in zip(sides, ((name, chosen.identity), (reference, chosen.identity)), strict=True)
    )
    found = explain_runs(
        ours.window,
        theirs.window,
        effect=experiment.threshold,
        paced=chosen.paced,
        blocks=tuple(run.block for run in sides[0]),
    )
    labels = name_both(name, reference, experiment)
    span = ours.window.span
    return Explained(
        archive=str(path),
        facts=ArchiveFacts(span=span, facts={}, limits=(), detailed_since=span.begin),
        chosen=Chosen(window=span, comparison=theirs.window.span, around=span, clipped=False),
        explanation=replace(
            found,
            window=replace(found.window, name=name, label=labels[0], runs=ours.runs),
            comparison=replace(found.comparison, name=reference, label=labels[1], runs=theirs.runs),
        ),
        texts={**theirs.texts, **ours.texts} if query_text else {},
        cell=chosen.identity,
    )


def _choose_environment(experiment: Experiment, name: str | None, option: str, *, without: str) -> str:
    names = [each.name for each in experiment.environments if each.name != without]
    name = next((each.name for each in experiment.environments if name and each.label == name), name)
    if name is None and len(names) == 1:
        return names[0]
    if name is None:
        raise UsageError("several environments could be meant", where=option, remedy=_name_one(names))
    if name not in names:
        what = f"an environment cannot be compared with itself: {name!r:.80}" if name == without else ""
        raise UsageError(what or f"there is no environment {name!r:.80}", where=option, remedy=_name_one(names))
    return name


def _choose_cell(experiment: Experiment, name: str | None) -> Cell:
    if name is None and len(experiment.cells) == 1:
        return experiment.cells[0]
    names = [cell.identity for cell in experiment.cells]
    if name is None:
        raise UsageError("several cells could be meant", where="--cell", remedy=_name_one(names))
    found = next((cell for cell in experiment.cells if cell.identity == name), None)
    if found is None:
        raise UsageError(f"there is no cell {name!r:.80}", where="--cell", remedy=_name_one(names))
    return found


def _name_one(names: Sequence[str]) -> str:
    return f"name one of {', '.join(names)}"
