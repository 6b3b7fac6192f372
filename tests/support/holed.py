"""Studies with holes in them: what real data lack, one thing or several at a time."""

from __future__ import annotations

import gzip
import math
import random
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from hypothesis import strategies as st

from desk import server_facts
from pgstrata.collectors.perf.sampler import SAMPLES
from pgstrata.model.activity import SessionState, WaitProfile
from pgstrata.model.floor import Floor
from pgstrata.model.metrics import BACKGROUND_LOAD, ROUND_TPS, SUSTAINED_RATE, TPS, Series
from pgstrata.model.price import Price
from pgstrata.model.queries import QueryCounts
from pgstrata.model.reasons import Reason
from pgstrata.model.runs import RunRecord, RunStatus, Validity
from pgstrata.model.server import Fingerprint
from pgstrata.model.study import Study
from pgstrata.ports.studies import StudyHead
from pgstrata.store import catalogue
from pgstrata.store.database import transaction
from whole_studies import CELLS, ENVIRONMENTS, ROUNDS, make_cell, make_study, query, session


def _values(change: Callable[[float], float]):
    def hole(run: RunRecord) -> RunRecord:
        return replace(run, measurements=tuple(replace(each, value=change(each.value)) for each in run.measurements))

    return hole


def _only(keep: Callable[[str], bool]):
    def hole(run: RunRecord) -> RunRecord:
        return replace(run, measurements=tuple(each for each in run.measurements if keep(each.metric)))

    return hole


def _lines(change: Callable[[Series], Series], *names: str):
    """Of all series, or those of these names."""

    def hole(run: RunRecord) -> RunRecord:
        changed = (change(each) if not names or each.metric in names else each for each in run.series)
        return replace(run, series=tuple(changed))

    return hole


def _first(number: int) -> Callable[[Series], Series]:
    return lambda series: replace(series, times=series.times[:number], values=series.values[:number])


def _level(value: float) -> Callable[[Series], Series]:
    return lambda series: replace(series, values=(value,) * len(series.values))


def _turned(value: float) -> Callable[[Series], Series]:
    return lambda series: replace(series, values=(value, *series.values[1:])) if series.values else series


def _fields(**changes):
    return lambda run: replace(run, **changes)


_BROKEN = {"measurements": (), "series": (), "sessions": (), "processes": (), "waits": None, "queries": None}
HOLES: dict[str, Callable[[RunRecord], RunRecord | None]] = {
    "no run": lambda _: None,
    "failed": _fields(
        status=RunStatus.FAILED,
        validity=Validity.INVALID,
        reasons=(Reason(code="failed"),),
        measured_seconds=0.0,
        **_BROKEN,
    ),
    "collapsed": _fields(status=RunStatus.COLLAPSED, validity=Validity.INVALID, reasons=(Reason(code="collapsed"),)),
    "invalid": _fields(validity=Validity.INVALID, reasons=(Reason(code="clock_jump", seconds=2.0),)),
    "suspect": _fields(validity=Validity.SUSPECT, reasons=(Reason(code="sampler_lost", names=("sessions",)),)),
    "no figures": _only(lambda _: False),
    "throughput alone": _only(lambda name: name == TPS.name),
    "no throughput": _only(lambda name: name != TPS.name),
    "no CPU": _only(lambda name: "cpu" not in name),
    "no latencies": _only(lambda name: "latency" not in name),
    "zeros": _values(lambda _: 0.0),
    "no numbers": _values(lambda _: math.nan),
    "endless numbers": _values(lambda _: math.inf),
    "huge numbers": _values(lambda value: 1e100 * value),
    "tiny numbers": _values(lambda value: 1e-100 * value),
    "numbers below zero": _values(lambda value: -value),
    "equal numbers": _values(lambda _: 7.0),
    "no series": _fields(series=()),
    "empty series": _lines(_first(0)),
    "one second": _lines(_first(1)),
    "two seconds": _lines(_first(2)),
    "series of zeros": _lines(_level(0.0)),
    "series of nothing": _lines(_level(math.nan)),
    "a second of nothing": _lines(_turned(math.nan)),
    "a second without end": _lines(_turned(math.inf)),
    "fewer rounds": _lines(_first(ROUNDS - 1), ROUND_TPS),
    "one round": _lines(_first(1), ROUND_TPS),
    "equal rounds": _lines(_level(100.0), ROUND_TPS),
    "alone": _fields(together=""),
    "with others": lambda run: replace(run, together=run.together and f"{run.together}-{run.environment}"),
    "unseen": _fields(sessions=(), processes=(), waits=None),
    "pauses alone": _fields(sessions=(session(SessionState.CLIENT, 100),)),
    "waits alone": _fields(sessions=(session(SessionState.WAITING, 100, "IO/WalSync"),)),
    "seen once": _fields(sessions=(session(SessionState.AWAKE, 1, query="UPDATE t"),)),
    "connecting": _fields(sessions=(session(SessionState.CONNECTING, 50), session(SessionState.AWAKE, 2))),
    "no profile": _fields(waits=None),
    "empty profile": _fields(waits=WaitProfile(hertz=10.0, counts=())),
    "not counted": _fields(queries=None),
    "nothing counted": _fields(queries=QueryCounts(queries=(), lost="")),
    "counts lost": _fields(queries=QueryCounts(queries=(), lost="somebody reset them")),
    "other statements": _fields(queries=QueryCounts(queries=(query("DELETE FROM t", 1e-3),))),
    "no statements": _fields(statements=()),
    "statements of nothing": lambda run: replace(
        run, statements=tuple(replace(each, seconds=math.nan) for each in run.statements)
    ),
    "statements without time": lambda run: replace(
        run, statements=tuple(replace(each, seconds=0.0) for each in run.statements)
    ),
    "no time": _fields(measured_seconds=0.0),
    "no start": _fields(started=""),
    "no overhead": _fields(dead_time={}),
}
PLACES: dict[str, Callable[[Study, RunRecord], bool]] = {
    "everywhere": lambda _study, _run: True,
    "in the baseline": lambda study, run: run.environment == study.plan.experiment.baseline,
    "in the last environment": lambda study, run: run.environment == study.plan.experiment.environments[-1].name,
    "in the first cell": lambda study, run: run.cell == study.plan.experiment.cells[0].identity,
    "in the first block": lambda _study, run: run.block == 1,
    "after the first block": lambda _study, run: run.block > 1,
    "in every other block": lambda _study, run: run.block % 2 == 0,
    "in some runs": lambda _study, run: random.Random(run.identity).random() < 0.4,
    "in one run": lambda study, run: run == study.runs[-1],
}


def dig(study: Study, hole: str, place: str) -> Study:
    """The study with a hole in all of its runs that are at that place."""
    chosen = ((run, PLACES[place](study, run)) for run in study.runs)
    changed = (HOLES[hole](run) if found else run for run, found in chosen)
    return replace(study, runs=tuple(run for run in changed if run is not None))


def _price(study: Study, names: Sequence[str]) -> Study:
    prices = {name: Price(amount=1.5, currency="USD", as_of="2026-01-01") for name in names}
    return _ask(study, prices=prices)


def _ask(study: Study, **changes) -> Study:
    return replace(study, plan=replace(study.plan, experiment=replace(study.plan.experiment, **changes)))


def _floor(study: Study, s0: float) -> Study:
    experiment = study.plan.experiment
    floors = {
        cell.identity: Floor(
            s0=s0, differences=24, cell=cell.identity, metric=experiment.metric, design="runs of 60 s", host="h",
            measured="2026-01-01T00:00:00+00:00",
        )
        for cell in experiment.cells
    }  # fmt: skip
    return replace(study, plan=replace(study.plan, floors=floors))


def _names(study: Study) -> list[str]:
    return [each.name for each in study.plan.experiment.environments]


OUTSIDE: dict[str, Callable[[Study], Study]] = {
    "no runs": lambda study: replace(study, runs=()),
    "one run": lambda study: replace(study, runs=study.runs[:1]),
    "no facts": lambda study: replace(
        study, environments={}, networks={}, host=Fingerprint(facts={}), client=Fingerprint(facts={})
    ),
    "facts of one": lambda study: replace(study, environments={_names(study)[0]: server_facts("16.1")}),
    "no rates": lambda study: replace(study, rates={}, maxima={}),
    "rates without maxima": lambda study: replace(study, maxima={}),
    "no plans": lambda study: replace(study, query_plans=()),
    "plans of one": lambda study: replace(study, query_plans=study.query_plans[:1]),
    "never begun": lambda study: replace(study, created="", version=""),
    "all left out": lambda study: replace(study, beyond=(make_cell(64, until_falls=True),)),
    "prices": lambda study: _price(study, _names(study)),
    "a price of the baseline": lambda study: _price(study, _names(study)[:1]),
    "a price of another": lambda study: _price(study, _names(study)[1:]),
    "floors": lambda study: _floor(study, 0.01),
    "floors of nothing": lambda study: _floor(study, 0.0),
    "no diagnosis": lambda study: _ask(study, diagnosis=False, query_text=False),
    "profiled": lambda study: _ask(study, profile_cpu=True),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Holed:
    """A design, and what its study lacks: holes at places, and what is missing beside its runs."""

    environments: str
    cells: str
    metric: str
    blocks: int
    sliced: bool
    holes: tuple[tuple[str, str], ...] = ()
    outside: tuple[str, ...] = ()

    def make(self) -> Study:
        study = make_study(self.environments, self.cells, metric=self.metric, blocks=self.blocks, sliced=self.sliced)
        for hole, place in self.holes:
            study = dig(study, hole, place)
        for name in self.outside:
            study = OUTSIDE[name](study)
        return study


@st.composite
def holed_studies(draw: st.DrawFn) -> Holed:
    """A study of any design with a few holes."""
    cells = draw(st.sampled_from(sorted(CELLS)))
    metrics = [SUSTAINED_RATE.name] if cells == "an objective" else [TPS.name, "latency_p95", "server_cpu_per_tx"]
    holes = st.tuples(st.sampled_from(sorted(HOLES)), st.sampled_from(sorted(PLACES)))
    return Holed(
        environments=draw(st.sampled_from(sorted(ENVIRONMENTS))),
        cells=cells,
        metric=draw(st.sampled_from(metrics)),
        blocks=draw(st.sampled_from([3, 1, 2, 7])),
        sliced=draw(st.booleans()),
        holes=tuple(draw(st.lists(holes, max_size=3))),
        outside=tuple(draw(st.lists(st.sampled_from(sorted(OUTSIDE)), max_size=3))),
    )


@dataclass(frozen=True, slots=True)
class Stored:
    """The study as a catalogue in a folder gives it back."""

    study: Study
    folder: Path
    identity: str = "holed"

    @classmethod
    def keep(cls, study: Study, folder: Path) -> Stored:
        path = folder / catalogue.CATALOGUE
        catalogue.create_catalogue(path)
        with closing(catalogue.open_for_writing(path)) as connection, transaction(connection):
            for run in study.runs:
                catalogue.save_run(connection, run)
        return cls(study=study, folder=folder)

    def head(self) -> StudyHead:
        return StudyHead(plan=self.study.plan, created=self.study.created, version=self.study.version)

    def load(self, *, metrics=None, series=False, sessions=False) -> Study:
        if metrics is not None:
            metrics = tuple(dict.fromkeys((self.study.plan.experiment.metric, BACKGROUND_LOAD, *metrics)))
        with catalogue.open_for_reading(self.folder / catalogue.CATALOGUE) as connection:
            runs = catalogue.load_runs(connection, metrics=metrics, series=series, sessions=sessions)
        return replace(self.study, runs=runs)

    def evidence(self, run: str, name: str) -> bytes:
        """Samples of perf: of some runs none, of some without a stack, of some not to their end."""
        draws = random.Random(run)
        seen, whole = draws.choice(("", "session;main;scan {}\nsession;main {}\ncheckpointer;main 3\n")), "# whole\n"
        text = seen.format(draws.randint(1, 90), draws.randint(1, 9)) + draws.choice((whole, whole, ""))
        return gzip.compress(text.encode()) if name == f"{SAMPLES}.gz" and draws.random() < 0.8 else b""
