"""`pgstrata bisect`: a search along ordered levels, or along commits, for the one at which a metric changed.

Each comparison is an ordinary study in a folder below that of the search. The same command goes on where it was: what
is finished is not measured again, and what could not be measured is not tried again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from pgstrata.app.answer import load_answer
from pgstrata.app.host_floors import with_floors
from pgstrata.app.kernel_search import CommitKernels, blame_level, builds_of
from pgstrata.app.machine import SystemClock
from pgstrata.app.places import capacity_here
from pgstrata.app.question import plan_experiment
from pgstrata.app.run import run_experiment, seconds_spent
from pgstrata.app.search_questions import SearchQuestion
from pgstrata.compare.headlines import lead_comparisons
from pgstrata.conduct.loop import Ending
from pgstrata.errors import (
    BootFailedError,
    ExperimentError,
    LevelNotTakenError,
    PgstrataError,
    PlanRefusedError,
    ServerFailedError,
    ServerUnusableError,
    StudyError,
    UsageError,
)
from pgstrata.model import sizes
from pgstrata.model.answer import Comparison
from pgstrata.model.bisect import Bisection, BisectStep, Outcome
from pgstrata.model.codec import parse_json
from pgstrata.model.experiment import Experiment
from pgstrata.plan.bisection import (
    LevelSide,
    Search,
    half_threshold,
    pair_experiment,
    side_of,
    side_of_ends,
)
from pgstrata.ports.events import Event, EventKind, Events
from pgstrata.ports.studies import StoredStudy, StudyRepository
from pgstrata.store.failures import storage_errors
from pgstrata.store.repository import StudyFolders
from pgstrata.store.serialise import render_json
from pgstrata.system.files import make_folders, remove_drafts, write_atomically
from pgstrata.system.reading import read_regular
from pgstrata.workloads import builtin_workloads

SKIPPED_FILE: Final = "skipped.json"
SEARCH_FILE: Final = "search.json"
_DRAFT_SECONDS: Final = 3600.0
_OUT_OF_TIME: Final = "the budget is spent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What a study says of its second environment, None where nothing was measured.

    `out_of_time` says that it could not be finished for that.
    """

    comparison: Comparison | None
    out_of_time: bool = False


class Measure(Protocol):
    """Carries out a question of two environments, or goes on with it, in the study of a name."""

    def __call__(self, experiment: Experiment, name: str) -> Measured:
        """What came of it.

        Raises:
            PgstrataError: it could not be carried out.
        """


# ------------------------------------------------------------------------------------------------ the search


@dataclass(frozen=True, slots=True, kw_only=True)
class Bisect:
    """Carries out a search.

    Args:
        question: what is searched.
        folder: of the search, made or gone on with.
        measure: carries out one comparison.
        tell: is told what is done next.
    """

    question: SearchQuestion
    folder: Path
    measure: Measure
    tell: Callable[[str], None]

    def search(self) -> Bisection:
        """What came of it.

        Raises:
            PgstrataError: an end could not be measured, or something else than a level is the reason.
        """
        question = self.question
        last = len(question.levels) - 1
        ends = self._step(last, question.experiment.threshold, "ends", side_of_ends)
        search, steps = Search(count=last + 1), list[BisectStep]()
        if ends.comparison is None or ends.side != LevelSide.LAST:
            outcome = Outcome.SAME if ends.side == LevelSide.FIRST else Outcome.UNDECIDED
            return self._result(outcome, ends, steps, search)
        threshold = half_threshold(ends.comparison, question.experiment.threshold)
        while (place := search.next) is not None:
            step = self._try(place, threshold, ends.comparison)
            steps.append(step)
            search = search.learn(place, LevelSide(step.side))
        outcome = Outcome.UNDECIDED if LevelSide.UNDECIDED in search.found.values() else Outcome.RANGE
        return self._result(Outcome.FOUND if search.is_exact else outcome, ends, steps, search)

    def _result(self, outcome: Outcome, ends: BisectStep, steps: list[BisectStep], search: Search) -> Bisection:
        reasons = [step.reason for step in (ends, *steps) if step.side == LevelSide.UNDECIDED and step.reason]
        return Bisection(
            experiment=self.question.experiment,
            factor=self.question.factor,
            levels=tuple(self.question.name(place) for place in range(len(self.question.levels))),
            commits=self.question.commits,
            outcome=outcome,
            ends=ends,
            steps=tuple(steps),
            before=search.first,
            after=search.last,
            folder=str(self.folder),
            reason=reasons[0] if reasons else "",
        )

    def _try(self, place: int, threshold: float, ends: Comparison) -> BisectStep:
        """A level between the ends; one whose own fault it is that it cannot be measured is skipped for good."""
        level = self.question.levels[place]
        known = self._load_skipped()
        if level.name not in known:
            try:
                return self._step(place, threshold, f"level-{level.name}", lambda found: side_of(found, ends))
            except PgstrataError as error:
                if not self._is_fault_of_level(error):
                    raise
                known = {**known, level.name: error.what}
                self._keep_skipped(known)
                self.tell(f"{self.question.name(place)} cannot be measured, and is skipped: {error.what}")
        return self._made(place, LevelSide.SKIPPED, None, threshold, f"level-{level.name}", known[level.name])

    def _step(self, place: int, threshold: float, name: str, judge: Callable[[Comparison], LevelSide]) -> BisectStep:
        question = self.question
        pair = (question.levels[0], question.levels[place])
        self.tell(f"{question.name(place)} against {question.name(0)}, threshold {threshold * 100:.3g} %")
        experiment = pair_experiment(question.experiment, question.factor, pair, threshold)
        measured = self.measure(experiment, name)
        side = judge(measured.comparison) if measured.comparison else LevelSide.UNDECIDED
        reason = {
            LevelSide.SKIPPED: "only this level collapsed",
            LevelSide.UNDECIDED: _OUT_OF_TIME if measured.out_of_time else "",
        }
        return self._made(place, side, measured.comparison, threshold, name, reason.get(side, ""))

    def _made(
        self, place: int, side: LevelSide, found: Comparison | None, threshold: float, name: str, reason: str
    ) -> BisectStep:
        return BisectStep(
            level=self.question.name(place),
            side=str(side),
            comparison=found,
            threshold=threshold,
            study=str(self.folder / name),
            reason=reason,
        )

    def _is_fault_of_level(self, error: PgstrataError) -> bool:
        """It cannot be built or started, or is not what it should be; not what the user or the host has to mend."""
        if isinstance(error, ServerFailedError | LevelNotTakenError | ServerUnusableError):
            return True
        # of a commit also that it holds no source that can be built; of a file that would be a wrong path
        wrong_source = isinstance(error, UsageError) and not isinstance(error, PlanRefusedError | ExperimentError)
        return type(error) is PgstrataError or (wrong_source and bool(self.question.commits))

    def _load_skipped(self) -> Mapping[str, str]:
        path = self.folder / SKIPPED_FILE
        try:
            found = parse_json(read_regular(path, most=sizes.SKIPPED_FILE))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise StudyError(
                f"the list of levels that were skipped cannot be read: {error}",
                where=str(path),
                remedy="remove the file: these levels are tried again then",
            ) from None
        return {str(name): str(reason) for name, reason in found.items()} if isinstance(found, dict) else {}

    def _keep_skipped(self, skipped: Mapping[str, str]) -> None:
        with storage_errors(self.folder):
            remove_drafts(self.folder, older=_DRAFT_SECONDS)
            write_atomically(self.folder / SKIPPED_FILE, render_json(dict(skipped), indent=2))


# ------------------------------------------------------------------------------------------------ measuring


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyMeasure:
    """Measures by ordinary studies.

    Args:
        studies: those of the search.
        events: where progress goes.
        budget: seconds of measuring, with all around it, for the whole search; None: as long as it takes.
        spent: seconds that earlier calls used and that do not count for this one.
        kernels: builds those of commits of Linux; None where levels are something else.
    """

    studies: StudyRepository
    events: Events
    budget: float | None
    spent: float = 0.0
    kernels: CommitKernels | None = None

    def __call__(self, experiment: Experiment, name: str) -> Measured:
        """What the study says, after what it still lacks was measured."""
        study = self.studies.named(name)
        if (found := _load_decided(study)) is not None:
            return Measured(comparison=found)
        if self.kernels is not None and not self._is_spent():
            experiment = self.kernels.ready(experiment)
        if self._is_spent():
            return Measured(comparison=None, out_of_time=True)
        workloads = builtin_workloads()
        plan = with_floors(plan_experiment(experiment, workloads, capacity_here()), workloads)
        try:
            outcome = run_experiment(plan, study, self.events, budget=self._left())
        except BootFailedError as error:
            if (blamed := blame_level(error, experiment)) is not None:
                raise blamed from error
            raise
        found = _load_comparison(study) if outcome.done else None
        return Measured(comparison=found, out_of_time=outcome.ending is Ending.BUDGET)

    def _left(self) -> float | None:
        """Seconds that may still be used; None: as long as it takes."""
        return None if self.budget is None else self.budget + self.spent - spent_in(self.studies, self.kernels)

    def _is_spent(self) -> bool:
        left = self._left()
        return left is not None and left <= 0


def spent_in(studies: StudyRepository, kernels: CommitKernels | None = None) -> float:
    """Seconds that the runs of all studies of a search took, with all around them, and the builds of its kernels."""
    return sum(map(_spent_in_study, studies.find_begun(""))) + (kernels.seconds() if kernels is not None else 0.0)


def _spent_in_study(study: StoredStudy) -> float:
    try:
        return seconds_spent(study)
    except StudyError:
        # whoever opens it mends it, or says what is wrong with it
        return 0.0


def _load_decided(study: StoredStudy) -> Comparison | None:
    """The answer of a study that needs no more runs; None where there is no such study."""
    if not study.begun():
        return None
    try:
        found = _load_comparison(study)
    except StudyError:
        # as above
        return None
    return found if found.decided_at is not None else None


def _load_comparison(study: StoredStudy) -> Comparison:
    """What answers the question of the study: over all cells where there are several."""
    return lead_comparisons(load_answer(study))[0]


def _claim(folder: Path, question: SearchQuestion) -> None:
    """Note in the folder what is searched there; StudyError if that is something else."""
    path, identity = folder / SEARCH_FILE, question.identity
    try:
        found = parse_json(read_regular(path, most=sizes.MARKER))
    except FileNotFoundError:
        with storage_errors(folder):
            make_folders(folder)
            write_atomically(path, render_json({"identity": identity}))
        return
    except (OSError, ValueError):
        found = None
    if not isinstance(found, dict) or found.get("identity") != identity:
        raise StudyError(
            "this folder holds another search, of other levels, another experiment or other builds",
            where=str(folder),
            remedy="name another folder with --study, or leave it out",
        )


def carry_out(question: SearchQuestion, folder: Path, events: Events, *, budget: float | None) -> Bisection:
    """Search, by studies in `folder`.

    Args:
        question: what is searched.
        folder: of the search, made or gone on with.
        events: where progress goes.
        budget: seconds for this call; None means what is left of the experiment's own budget for the whole search.

    Raises:
        InterruptedByUserError: what was finished is kept.
        PgstrataError: an end cannot be measured, the host is not fit, a folder holds another question.
    """

    def tell(text: str) -> None:
        events.emit(Event(kind=EventKind.NOTE, text=text))

    _claim(folder, question)
    given, studies = budget is not None, StudyFolders(folder)
    kernels = None
    if (source := question.kernels) is not None:
        kernels = CommitKernels(build=builds_of(source, tell), folder=folder, clock=SystemClock())
    measure = StudyMeasure(
        studies=studies,
        events=events,
        budget=budget if given else question.experiment.budget,
        spent=spent_in(studies, kernels) if given else 0.0,
        kernels=kernels,
    )
    return Bisect(question=question, folder=folder, measure=measure, tell=tell).search()
