"""Pages of made-up studies of every size, of all kinds of charts, of archives and of what is served."""

from __future__ import annotations

import dataclasses
from itertools import islice, product, starmap
from pathlib import Path

import numpy as np

from archives import BLOCKER, START, Second, behind, make_archive, session, use
from attributed import EVIL, account, attribution
from courses import lay_courses
from desk import Desk
from pgstrata.app.correlate import load_associations
from pgstrata.app.decide import decide_file
from pgstrata.app.explain import load_explanation, load_periods, load_profile
from pgstrata.app.incidents import load_incidents
from pgstrata.compare.merged import merge_parts
from pgstrata.compare.one_look import ImportTerms
from pgstrata.diagnosis.live.detection import WEEK
from pgstrata.diagnosis.live.explain import explain_runs
from pgstrata.model.answer import ALL_CELLS, Interval, Verdict
from pgstrata.model.archive import (
    ArchiveFacts,
    ArchiveWindow,
    Holder,
    HolderKind,
    Horizon,
    Relation,
    RelationUse,
    Span,
)
from pgstrata.model.bisect import Bisection, BisectStep, Commit, Outcome
from pgstrata.model.doubts import NamedDoubt
from pgstrata.model.experiment import ControlKind, Level
from pgstrata.model.explanation import Chosen, Explained
from pgstrata.model.listing import Listed, ListedKind, ListedState, Listing
from pgstrata.model.merged import HOST, MergedPart
from pgstrata.model.runs import StatementLatency
from pgstrata.model.server import ChangedSetting
from pgstrata.report.answer.merged import make_merged_document
from pgstrata.report.blocks.page import emit_page
from pgstrata.report.commands.decision_page import make_decision_document
from pgstrata.report.commands.search_page import make_search_document
from pgstrata.report.live.correlate import make_associations_document
from pgstrata.report.live.document import make_explanation
from pgstrata.report.live.incidents import make_incidents
from pgstrata.report.live.periods import make_periods_document
from pgstrata.report.live.profile import make_profile_document
from pgstrata.report.served.beside import Figures, StudyFigures, make_beside_document
from pgstrata.report.served.pages import Frame, Link, Pages
from rendering import render_html
from sampled_stacks import BASE, MORE, side

_DESK = Desk()
_INSTANCES = Path(__file__).parents[2] / "examples" / "instances"
_FEW = 13
_SERVERS, _BUFFERS, _COMPRESSIONS = (
    ("14", "15", "16", "17", "18"), ("128MB", "1GB", "4GB", "16GB"), ("off", "lz4", "zstd"),
)  # fmt: skip
_CELLS = {1: (1, (10,), (4,)), 12: (3, (10,), (1, 4, 16, 64)), 72: (3, (1, 10, 100), (1, 2, 4, 8, 16, 32, 64, 128))}
_EFFECTS = (0.95, 1.08, 0.62, 1.9, 1.01, 0.97)
_VERDICTS = (
    None, Verdict.INCONCLUSIVE, None, Verdict.NEGLIGIBLE, Verdict.INSUFFICIENT, None, Verdict.UNSTABLE, Verdict.COLLAPSED,
)  # fmt: skip
_NARROW = Interval(low=0.992, high=1.009)
_QUESTION = (
    "Is the build with our patch and the path of schemas that we have used for many years faster than the one that the "
    "distribution ships, and does that depend on the number of clients?"
)


# ------------------------------------------------------------------------------------------------ studies of all sizes


def study_page(environments, cells, *, long=False):
    """The report of so many environments and a control in so many cells, with verdicts of every kind.

    `long`: with names as long as those of real builds.
    """
    levels = list(_long_levels(environments) if long else _levels(environments))
    made = [_DESK.environment(f"e{place}", each) for place, each in enumerate(levels)]
    made.append(_DESK.environment("again", levels[0], ControlKind.SAME))
    effects = (1.0, *(_EFFECTS[place % len(_EFFECTS)] for place in range(environments - 1)), 1.0)
    large = environments * cells > _FEW * 12
    answer = _DESK.answer(
        environments=tuple(made), cells=tuple(_cells(cells, long=long)), effects=effects, blocks=1 if large else 3,
        seconds=2 if large else 30,
    )  # fmt: skip
    answer = _DESK.headlines(answer) if cells > 1 else answer
    comparisons = tuple(_vary(each, place) for place, each in enumerate(answer.comparisons))
    plan = answer.study.plan
    question = _QUESTION if long else plan.experiment.question
    factors = tuple(dict.fromkeys(factor for each in levels for factor, _ in each))
    experiment = dataclasses.replace(plan.experiment, factors=factors, question=question)
    study = dataclasses.replace(answer.study, plan=dataclasses.replace(plan, experiment=experiment))
    doubts = (NamedDoubt(code="clock_source", names=("hpet",)),)
    return render_html(dataclasses.replace(answer, study=study, comparisons=comparisons, warnings=doubts))


def _levels(number):
    if number <= _FEW:
        return ((("server", str(10 + place)),) for place in range(number))
    names = ("server", "settings.shared_buffers", "settings.wal_compression")
    every = product(_SERVERS, _BUFFERS, _COMPRESSIONS)
    return (tuple(zip(names, each, strict=True)) for each in islice(every, number))


def _long_levels(number):
    schemas = "a_schema,another_schema_with_a_name_that_breaks_nowhere"
    for place in range(number):
        build = f"prefix:/opt/builds/postgresql/{10 + place}-with-a-patch-of-our-own/bin"
        yield (("server", build), ("settings.search_path", schemas))


def _cells(number, *, long):
    workloads, scales, clients = _CELLS[number]
    names = ("simple-update", "select-only", "tpcb-like")
    if long:
        names = tuple(f"a-workload-of-our-own-with-a-name-that-is-rather-long-{place}" for place in range(workloads))
    for name, scale, number_of_clients in product(names[:workloads], scales, clients):
        yield dataclasses.replace(_DESK.cell(number_of_clients, name), scale=scale)


def _vary(comparison, place):
    if comparison.control:
        same = {"effect": 1.001, "interval": _NARROW, "equivalence_interval": _NARROW}
        return dataclasses.replace(comparison, verdict=Verdict.EQUIVALENT, **same)
    verdict = _VERDICTS[place % len(_VERDICTS)]
    if verdict is None or comparison.cell == ALL_CELLS or place == 0:
        return comparison
    unknown = {"interval": None, "equivalence_interval": None} if verdict is Verdict.INSUFFICIENT else {}
    return dataclasses.replace(comparison, verdict=verdict, decided_at=None, **unknown)


# ------------------------------------------------------------------------------------------------ every kind of chart


def rich_page(*, sliced=False, long=False):
    """A report with everything that there can be in one: causes, flames, percentiles, statements, steps, pairs.

    `long`: with names as long as those of real builds.
    """
    answer = lay_courses(
        _DESK,
        {
            "host_user_cpu": lambda name, at: at + 20 * (name == "pg18"),
            "disk_queue@nvme0n1": lambda name, at: 2 + 3 * (name == "pg18-async"),
            "disk_throughput": lambda name, at: 4e6 + 1e6 * (at % 7) + 2e6 * (name == "pg18"),
        },
    )
    answer = _lengthen(answer) if long else answer
    answer = _DESK.slices(answer) if sliced else answer
    statements = tuple(StatementLatency(text=text, seconds=0.001) for text in (EVIL, "SELECT abalance FROM t;", "END;"))
    runs = tuple(dataclasses.replace(run, statements=statements) for run in answer.study.runs)
    shifts = tuple(
        _DESK.shift(percent, environment=name) for name in ("pg18", "pg18-async") for percent in (10, 50, 90, 95, 99)
    )
    pairs = tuple(_DESK.comparison(environment="pg18-async", reference=name) for name in ("pg16", "pg18"))
    return render_html(
        dataclasses.replace(
            answer,
            study=dataclasses.replace(answer.study, runs=runs),
            shifts=shifts,
            pairs=pairs,
            effects=(_DESK.effect(), _DESK.interaction()),
            axes=(_axis(answer),),
            attributions=(attribution(), attribution(environment="pg18-async")),
            accounts=(account("pg16", 4e-4), account("pg18", 3.6e-4)),
            stacks=(*side("pg16", BASE), *side("pg18", MORE)),
            changed_settings=tuple(
                (name, ChangedSetting(name=setting, value=value, unit=unit, default="16384"))
                for name in ("pg16", "pg18", "pg18-async", "pg16-control")
                for setting, value, unit in (
                    ("shared_buffers", "131072", "8kB"),
                    ("max_wal_size", "4096" if name == "pg18" else "8192", "MB"),
                    ("shared_preload_libraries", "an_extension_of_our_own,another_one_with_a_longer_name", ""),
                )
            ),
        )
    )


def _lengthen(answer):
    """The same study with other builds, whose control is the first one again."""
    plan = answer.study.plan
    own = plan.experiment.environments
    levels = [tuple(starmap(_level, each)) for each in _long_levels(len(own))]
    found = [dataclasses.replace(each, levels=levels[0 if each.control else place]) for place, each in enumerate(own)]
    factors = tuple(level.factor for level in levels[0])
    experiment = dataclasses.replace(plan.experiment, environments=tuple(found), factors=factors, question=_QUESTION)
    study = dataclasses.replace(answer.study, plan=dataclasses.replace(plan, experiment=experiment))
    return dataclasses.replace(answer, study=study)


def _axis(answer):
    """The axis of versions with its step, by the levels that the first two environments have."""
    axis = _DESK.axis()
    own = [each.levels[0].value for each in answer.study.plan.experiment.environments]
    (step,) = axis.steps
    return dataclasses.replace(
        axis, levels=(own[0], own[1]), steps=(dataclasses.replace(step, before=own[0], after=own[1]),)
    )


def _level(factor, value):
    return Level(factor=factor, value=value)


def runs_page():
    """What `explain` says of an environment of a study."""
    ours, theirs = (_run_window(slower) for slower in (True, False))
    blocks = tuple(range(1, 1 + len(ours.looks)))
    found = explain_runs(ours, theirs, effect=0.03, paced=False, blocks=blocks)
    names = [
        f"{dict(levels)['server']} (search_path = {dict(levels)['settings.search_path']})" for levels in _long_levels(2)
    ]
    found = dataclasses.replace(
        found,
        window=dataclasses.replace(found.window, name="e1", label=names[1], runs=len(blocks)),
        comparison=dataclasses.replace(found.comparison, name="e0", label=names[0], runs=len(blocks)),
    )
    chosen = Chosen(window=ours.span, comparison=theirs.span, around=ours.span, clipped=False)
    facts = ArchiveFacts(span=ours.span, facts={}, limits=(), detailed_since=0)
    told = Explained(archive="study", facts=facts, chosen=chosen, explanation=found, texts=_TEXTS, cell="update-s1-c4")
    return emit_page(make_explanation(told, "1"))


def _run_window(slower):
    draws = np.random.default_rng(11 + slower)
    loads = {_SELECT: 2.0, _REPORT: 0.6, _WAITING: 1.8 if slower else 0.2, session("20", "LWLock/WALWrite"): 0.4}
    number = 12
    return ArchiveWindow(
        span=Span(begin=0, end=60 * number), unit=1, cell=60, looks=(600,) * number,
        sessions={
            each: tuple(int(600 * load * factor) for factor in draws.normal(1, 0.03, number))
            for each, load in loads.items()
        },
        rates={"commits": tuple((700.0 if slower else 1000.0) * draws.normal(1, 0.02, number))},
    )  # fmt: skip


def decision_page():
    """Tables of others' results, with prices."""
    terms = ImportTerms(baseline="m5d.8xlarge")
    return emit_page(
        make_decision_document(decide_file(_INSTANCES / "published.csv", terms, _INSTANCES / "prices.toml"))
    )


def merged_page():
    """A study of three machines, two of which have names that are long."""
    parts = []
    for place, name in enumerate(
        ("db1", "a-machine-of-another-type-with-a-long-name", "a-third-machine-for-comparison")
    ):
        study = _DESK.answer(blocks=12, effects=(1.0, 1.05 - 0.04 * place, 0.8, 1.0), cells=(_DESK.cell(),)).study
        parts.append(MergedPart(name=name, study=study, kind=f"type {place % 2}"))
    return emit_page(make_merged_document(merge_parts("machines", HOST, parts)))


def search_page():
    """A search along commits, one of which does not build."""
    subjects = (
        "A first change",
        "Another change with a subject that is rather long",
        "It does not build",
        "The last one",
    )
    commits = tuple(
        Commit(hash=f"{place}" * 40, date="2026-01-02T03:04:05+00:00", subject=subject)
        for place, subject in enumerate(subjects, 1)
    )
    levels = tuple(each.hash[:12] for each in commits)
    whole = _DESK.comparison(verdict=Verdict.WORSE, effect=0.93, interval=Interval(low=0.92, high=0.945))
    same = _DESK.comparison(verdict=Verdict.EQUIVALENT, effect=1.001, interval=_NARROW, equivalence_interval=_NARROW)
    found = Bisection(
        experiment=_DESK.answer(blocks=1).study.plan.experiment, factor="server", levels=levels, commits=commits,
        outcome=Outcome.RANGE, before=1, after=3, folder="studies/bisect-pg-3f2a91c0",
        ends=BisectStep(level=levels[3], side="last", comparison=whole, threshold=0.03, study="ends"),
        steps=(
            BisectStep(level=levels[1], side="first", comparison=same, threshold=0.036, study=f"level-{levels[1]}"),
            BisectStep(level=levels[2], side="skipped", comparison=None, threshold=0.036, study=f"level-{levels[2]}",
                       reason="the build failed: make: *** [src/backend/a_file_with_a_long_name.o] Error 1"),
        ),
    )  # fmt: skip
    return emit_page(make_search_document(found, "1"))


# ------------------------------------------------------------------------------------------------ live servers

_SELECT, _WAITING = session("10"), session("20", "Lock/transactionid")
_REPORT = session("30", "IO/DataFileRead", application="a reporting tool with a name that is rather long")
_TEXTS = {
    "10": "select c.balance, c.first, c.last from customer c where c.w_id = $1 and c.d_id = $2 and c.id = $3 for update",
    "20": "update a_table_with_a_long_name set a_column_with_a_long_name = a_column_with_a_long_name + $1 where id = $2",
    "30": EVIL,
}
_HELD = Horizon(holder=Holder(kind=HolderKind.SLOT, name="a_replication_slot_that_was_forgotten"), age=7000, held=0)


def record(folder):
    """An archive of an hour: more demand, a row that is locked for ten minutes, a stall."""
    draws = np.random.default_rng(7)

    def tell(number):
        more, locked, stalled = 1200 <= number < 1500, 2400 <= number < 3000, 3300 <= number < 3400
        rate = 0 if stalled else 1000 * (0.6 if locked else 2 if more else 1)
        sessions = {_SELECT: int(draws.binomial(8, 0.7)) * (2 if more else 1) + 1, _WAITING: 1}
        if locked:
            sessions = {_SELECT: 2, _WAITING: int(draws.integers(6, 9)), BLOCKER: 1, _REPORT: int(draws.integers(1, 5))}
        use_of = RelationUse(sequential_scans=60.0 * (5 if locked else 1), sequential_rows=600.0)
        return Second(
            sessions,
            float(round(rate * draws.normal(1, 0.03))),
            behind(_WAITING, sessions=7) if locked else {},
            {"host_user_cpu": 1.0 + number % 5 / 10, "disk_throughput": 1e6 * (4 if locked else 1)},
            {Relation(name="public.a_table_with_a_long_name"): use_of} if number % 60 == 59 else {},
            _HELD if locked else None,
        )

    def uses(number):
        late, odd = 2400 <= number < 3000, number // 10 % 3
        return {"10": use(1000 + odd, 2.0 + odd / 50, 9.0), "20": use(100 + odd, (40.0 if late else 1.0) + odd / 50)}

    return make_archive(folder, 3600, tell, uses=uses, texts=_TEXTS)


def live_page(kind, archive):
    """What a command says of an archive of `record`."""
    slow, before = (f"@{START + 2400}", f"@{START + 3000}"), f"@{START + 1800}..@{START + 2400}"
    make = {
        "explain": lambda: make_explanation(load_explanation(archive, *slow, before), "1"),
        "window": lambda: make_profile_document(load_profile(archive, *slow), "1"),
        "periods": lambda: make_periods_document(load_periods(archive, *slow, before), "1"),
        "incidents": lambda: make_incidents(load_incidents(archive, None, None, rate=1 / WEEK), "1"),
        "correlate": lambda: make_associations_document(load_associations(archive, None, None), "1"),
    }
    return emit_page(make[kind]())


# ------------------------------------------------------------------------------------------------ what is served

_FRAME = Frame(
    nonce="n",
    links=(Link(text="all studies", address="/a"), Link(text="report"), Link(text="another study beside it", address="/b")),
    state="12 of 48 runs, measured at present",
)  # fmt: skip


def list_page():
    """The list of `pgstrata serve`."""
    entries = (
        _listed("study", ListedState.FINISHED, headline="17 is faster than 16: +4.2 % [+3.1, +5.5]"),
        _listed(
            "a-folder/" + "of-a-long-name-" * 6,
            ListedState.RUNNING,
            runs=12,
            planned=48,
            process=4711,
            host="db1",
            question=_QUESTION,
        ),
        _listed("broken", ListedState.DAMAGED, problem="plan.json is no plan: unexpected end of the file in line 1"),
    )
    listing = Listing(folder="/home/somebody/studies", entries=entries, depth=3, unread=("/home/somebody/x",), cut=True)
    return Pages().studies(listing, lambda each: f"/{each.name}", _FRAME, 1)


def _listed(name, state, *, question="Is 17 faster than 16?", **more):
    return Listed(
        kind=ListedKind.STUDY, path=f"/home/somebody/studies/{name}", state=state, name=name, question=question,
        environments=("16", "17"), created="2026-01-02T03:04:05+00:00", **more,
    )  # fmt: skip


def beside_page():
    """Two studies beside each other, as they are served."""
    studies = [StudyFigures(title=title, figures=dict(_figures(place))) for place, title in enumerate((_QUESTION, "b"))]
    return Pages().framed(emit_page(make_beside_document(*studies, "1")), _FRAME)


def _figures(place):
    names = [", ".join(value for _, value in levels) for levels in _long_levels(3)]
    for metric, cell, (at, name) in product(("tps", "latency_p95"), _cells(12, long=True), enumerate(names)):
        where = f"{cell.workload}, scale {cell.scale}, {cell.clients} clients"
        effect = f"+{at + place}.2 % [+{at + place}.1, +{at + place}.3]" if at else "baseline"
        median = 1000.0 + place if metric == "tps" else 0.002
        yield (metric, where, name), Figures(metric=metric, cell=where, environment=name, median=median, effect=effect)


def framed_page():
    """A report as it is served."""
    return Pages().framed(study_page(2, 1), _FRAME)
