"""The report as plain text, ready for a mailing list: no line is longer than 78 columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pgstrata.compare.headlines import headline_comparisons
from pgstrata.model.answer import Answer, Study
from pgstrata.model.metrics import METRICS
from pgstrata.report.anomalies import anomaly_sentences
from pgstrata.report.columns import (
    WIDTH,
    Column,
    cost_columns,
    decision_columns,
    effect_columns,
    fits,
    pair_columns,
    render_tables,
    value_column,
    wrap_text,
)
from pgstrata.report.contrasts import contrast_rows
from pgstrata.report.designs import cell_notes, headline_note, say_values
from pgstrata.report.doubts import doubt_sentences
from pgstrata.report.fold import fold_experiment
from pgstrata.report.limits import unmeasured
from pgstrata.report.names import count, name_cell, name_environment
from pgstrata.report.ordered import primary_axes, say_axis
from pgstrata.report.profile import make_profile
from pgstrata.report.rows import (
    CellRows,
    Fact,
    arrange_cells,
    arrange_headlines,
    arrange_pairs,
    asked_settings,
    group_servers,
    note_pairs,
    render_status,
    rig_facts,
    title_pairs,
    unusual_runs,
)
from pgstrata.report.verdicts import name_baseline
from pgstrata.report.words import answer_sentences, capitalise
from pgstrata.units import render_duration, render_percent_change

_MOST_RUNS = 20
_INDENT = "    "


def render_text(answer: Answer) -> str:
    """The whole report: the answer in words, tables, rig, versions, settings, runs, how to reproduce."""
    study = answer.study
    axes = [capitalise(say_axis(axis, study.plan.experiment)) for axis in primary_axes(answer)]
    parts = [
        _paragraphs(_end(sentence.text) for sentence in answer_sentences(answer)),
        _wrap(f"Question: {study.plan.experiment.question}"),
        _headline_part(answer),
        *(_cell_part(answer, cell) for cell in arrange_cells(answer)),
        _pairs_part(answer),
        _section("Factors and what they depend on (exploratory)", _contrasts(answer)),
        _section("Steps along ordered factors", _list(axes)),
        _section("What looked wrong", _list(anomaly_sentences(answer))),
        _section("Doubts", _list(doubt_sentences(answer))),
        _section("What this does not say", _list(unmeasured(answer))),
        _section("Rig", _facts(rig_facts(study))),
        _section("Servers", _servers(study)),
        _section("Settings", _settings(study)),
        _section("Runs", _runs(study)),
        _section("How to reproduce", _reproduction(study)),
    ]
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def _end(text: str) -> str:
    return text if text.endswith((".", "!")) else f"{text}."


def _wrap(text: str, *, first: str = "", rest: str = "") -> list[str]:
    return wrap_text(text, WIDTH, first=first, rest=rest) or [first.rstrip()]


def _paragraphs(texts: Iterable[str]) -> list[str]:
    return [line for text in texts for line in _wrap(text)]


def _list(texts: Iterable[str]) -> list[str]:
    return [line for text in texts for line in _wrap(text, first="- ", rest="  ")]


def _facts(facts: Iterable[Fact]) -> list[str]:
    return [line for fact in facts for line in _wrap(f"{fact.name}: {fact.value}", first="  ", rest="      ")]


def _section(title: str, lines: Sequence[str]) -> list[str]:
    return [title, "-" * len(title), *lines] if lines else []


# ------------------------------------------------------------------------------------------------ tables


def _headline_part(answer: Answer) -> list[str]:
    """The table of the headlines, apart from those of single cells."""
    rows = arrange_headlines(answer)
    if not rows:
        return []
    experiment = answer.study.plan.experiment
    cells = count(len(experiment.cells), "cell")
    head = f"All {cells} together (geometric mean), against {name_baseline(experiment)}"
    names = Column(title="environment", cells=tuple(row.name for row in rows))
    tables = _decided_tables(names, effect_columns(rows), decision_columns(rows))
    return [*_wrap(head), *tables, *_notes([headline_note(answer)])]


def _pairs_part(answer: Answer) -> list[str]:
    rows = arrange_pairs(answer)
    if not rows:
        return []
    names = Column(title="pair", cells=tuple(row.name for row in rows))
    tables = _decided_tables(names, effect_columns(rows), pair_columns(rows))
    return [*_wrap(title_pairs(answer)), *tables, *_notes([note_pairs(answer)])]


def _decided_tables(names: Column, effects: Sequence[Column], decisions: Sequence[Column]) -> list[str]:
    """One table, or two where they do not fit beside each other."""
    columns = [*effects, *decisions]
    groups = [columns] if fits(names, columns) else [effects, decisions]
    return _spaced(table for group in groups for table in render_tables(names, group))


def _cell_part(answer: Answer, cell: CellRows) -> list[str]:
    """The comparison first; the figures behind it beside it where there is room, below it where there is none."""
    experiment = answer.study.plan.experiment
    values = say_values(answer.study.plan, cell.cell)
    explored = bool(headline_comparisons(answer))
    head = f"{name_cell(cell.cell, experiment)} ({METRICS[experiment.metric].title}, {values})"
    names = Column(title="environment", cells=tuple(row.name for row in cell.rows))
    value = value_column(cell.rows, experiment.metric)
    effects, costs = effect_columns(cell.rows), cost_columns(cell.rows)
    decisions = decision_columns(cell.rows, explored=explored)
    if fits(names, [value, *effects, *decisions]):
        groups = [[value, *effects, *decisions]]
    elif fits(names, [value, *effects]):
        groups = [[value, *effects], decisions]
    else:
        groups = [effects, [value, *decisions]]
    tables = [table for group in groups for table in render_tables(names, group)]
    per_transaction = Column(title="per transaction", cells=names.cells)
    tables += render_tables(per_transaction, costs)
    notes = _notes(["Exploratory: one of several cells"] if explored else [])
    return [*_wrap(head), *notes, *_spaced(tables), *_notes(cell_notes(answer, cell.cell)), *_profile(answer, cell)]


def _spaced(tables: Iterable[list[str]]) -> list[str]:
    return [line for table in tables for line in ("", *table)]


def _notes(texts: Iterable[str]) -> list[str]:
    return [line for text in texts if text for line in _wrap(_end(text), first="  ", rest="  ")]


def _contrasts(answer: Answer) -> list[str]:
    """Main effects and interactions; those of single cells say so."""
    rows = contrast_rows(answer)
    several = len({row.cell for row in rows}) > 1
    lines: list[str] = []
    for row in rows:
        where = f" on {row.cell}" if several else ""
        figures = f"{row.effect} {row.interval}, {row.verdict}, {row.decided}, p {row.p}"
        lines += _wrap(f"{row.name}{where}: {figures}", first="- ", rest="  ")
    return lines


def _profile(answer: Answer, cell: CellRows) -> list[str]:
    profile = make_profile(answer.study, cell.cell.identity)
    if not profile.rows:
        return []
    lines = ["", *_wrap(f"Statements: {profile.note}")]
    names = Column(title="environment", cells=tuple(row.name for row in cell.rows))
    for row in profile.rows:
        latencies = tuple(render_duration(item) if item is not None else "-" for item in row.seconds)
        changes = tuple(render_percent_change(item) if item is not None else "" for item in row.changes)
        columns = [Column(title="latency", cells=latencies), Column(title="difference", cells=changes)]
        lines += ["", *_wrap(row.text, first="  ", rest="    ")]
        lines += [f"  {line}" for table in render_tables(names, columns) for line in table]
    return lines


# ------------------------------------------------------------------------------------------------ facts


def _servers(study: Study) -> list[str]:
    lines: list[str] = []
    for names, facts in group_servers(study):
        lines += _wrap(f"{'; '.join(names)}:", first="  ", rest="  ")
        lines += [line for fact in facts for line in _wrap(_say_server(fact), first="    ", rest="      ")]
    return lines


def _say_server(fact: Fact) -> str:
    return fact.value if fact.name == "version" else f"{fact.name}: {fact.value}"


def _settings(study: Study) -> list[str]:
    experiment = study.plan.experiment
    common, own = asked_settings(study)
    lines = [line for fact in common for line in _wrap(f"{fact.name} = {fact.value}", first="  ", rest="      ")]
    for name, facts in own.items():
        text = ", ".join(f"{fact.name} = {fact.value}" for fact in facts)
        title = name_environment(experiment.environment(name), experiment)
        lines += _wrap(f"{title}: {text}", first="  ", rest="      ")
    return lines


def _runs(study: Study) -> list[str]:
    unusual = unusual_runs(study)
    planned = len(study.plan.blocks)
    seconds = sum(run.measured_seconds for run in study.runs)
    text = f"{count(study.measured_blocks, 'block')} of {planned} planned, {count(len(study.runs), 'run')}"
    text += f", {render_duration(seconds)} measured; {len(unusual)} not simply valid"
    lines = _wrap(text, first="  ", rest="  ")
    for run in unusual[:_MOST_RUNS]:
        reasons = "; ".join(reason.text for reason in run.reasons) or "no reason given"
        lines += _wrap(f"{run.identity}: {render_status(run)}: {reasons}", first="  - ", rest="      ")
    if len(unusual) > _MOST_RUNS:
        lines += _wrap(f"... and {len(unusual) - _MOST_RUNS} more", first="  ")
    return lines


def _reproduction(study: Study) -> list[str]:
    lines = [
        *_wrap(f"study {study.name}, plan {study.plan.identity}, created {study.created}", first="  ", rest="      "),
        *_wrap(f"pgstrata {study.version}: pgstrata run experiment.toml", first="  ", rest="      "),
    ]
    text = study.plan.experiment.text.rstrip("\n")
    if not text:
        return lines
    folded, is_cut = fold_experiment(text, WIDTH - len(_INDENT))
    note = ["  (lines that end in a backslash go on in the next one)"] if is_cut else []
    return [*lines, "", "  experiment.toml:", *note, *(f"{_INDENT}{line}".rstrip() for line in folded)]
