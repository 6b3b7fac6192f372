"""The end of a report: rig, servers, settings, suspect, invalid and failed runs, limits, reproduction."""

from statistics import median

from pgstrata.compare import exclusive_settings
from pgstrata.model.experiment import Experiment
from pgstrata.model.study import Study
from pgstrata.report.answer.environment_rows import (
    asked_settings,
    differing_facts,
    group_servers,
    observed_environments,
    render_status,
    rig_facts,
    setup_overhead,
    unusual_runs,
)
from pgstrata.report.blocks.model import (
    Block,
    Column,
    Details,
    Fact,
    Facts,
    Listing,
    Marked,
    OnPage,
    Paragraph,
    Section,
    Shape,
    Table,
    Tone,
    Verbatim,
)
from pgstrata.report.sentences.names import count, name_environment
from pgstrata.report.sentences.reasons import say_notes, say_reason
from pgstrata.units import render_duration

_MOST_RUNS_IN_TEXT = 20
_MOST_RUNS = 200
_MOST_DIFFERENCES = 200


def summarise_runs(study: Study) -> str:
    """9 of 12 planned blocks, 36 runs, 18 min measured, 1 suspect, invalid or failed."""
    planned = len(study.plan.blocks)
    seconds = render_duration(sum(run.measured_seconds for run in study.runs))
    unusual = len(unusual_runs(study))
    text = f"{study.measured_blocks} of {count(planned, 'planned block')}, {count(len(study.runs), 'run')}"
    return f"{text}, {seconds} measured" + (f", {unusual} suspect, invalid or failed" if unusual else "")


def measured_where(study: Study) -> Section:
    """The machine and the servers."""
    rig = Facts(rig_facts(study) or (Fact(name="nothing is known", value=""),))
    groups = (Section("Rig", (rig,)), Section("Servers", group_servers(study)))
    return Section("Where it was measured", groups, parallel=True)


def settings_section(study: Study) -> Section:
    """Settings that were asked for, those of all environments first, and on a page what was observed to differ."""
    experiment = study.plan.experiment
    common, own = asked_settings(study)
    groups = [("In all environments", common)] if common else []
    groups += [(name_environment(experiment.environment(name), experiment), facts) for name, facts in own.items()]
    blocks: list[Block] = [
        Section(title, (Verbatim("\n".join(f"{fact.name} = {fact.value}" for fact in facts)),))
        for title, facts in groups
    ]
    if not blocks:
        blocks.append(Paragraph("No setting was asked for beyond the servers' own defaults.", Tone.NOTE))
    return Section("Settings", (*blocks, OnPage(lambda: _fingerprints(study))))


def _fingerprints(study: Study) -> tuple[Block, ...]:
    experiment = study.plan.experiment
    differences = differing_facts(study)
    blocks: list[Block] = [
        Paragraph(f"Only in {' and '.join(servers)} ({len(names)}): {', '.join(names)}")
        for servers, names in exclusive_settings(study.environments, experiment)
    ]
    shown, left = differences[:_MOST_DIFFERENCES], len(differences) - _MOST_DIFFERENCES
    if shown:
        told = [tuple("-" if value is None else value or "(empty)" for value in values) for _, values in shown]
        columns = tuple(
            Column(title=name_environment(environment, experiment), cells=cells, words=True)
            for environment, cells in zip(observed_environments(study), zip(*told, strict=True), strict=True)
        )
        names = Column(title="fact", cells=tuple(name for name, _ in shown))
        blocks.append(Table(names=names, columns=columns, style="facts"))
    if left > 0:
        blocks.append(Paragraph(f"… and {left} more.", Tone.NOTE))
    title = "Fingerprints: everything that was observed to differ between the environments"
    return (Details(title, tuple(blocks)),) if blocks else ()


def unusual_section(study: Study) -> Section:
    """Suspect, invalid and failed runs, with the reasons."""
    found = unusual_runs(study)
    runs, left = found[:_MOST_RUNS], len(found) - _MOST_RUNS
    reasons = ("; ".join(map(say_reason, run.reasons)) or "no reason given" for run in runs)
    table = Table(
        names=Column(title="run", cells=tuple(run.identity for run in runs)),
        columns=(
            Column(title="status", cells=tuple(map(render_status, runs)), words=True, joint=": "),
            Column(title="why", cells=tuple(reasons), words=True, joint=": "),
        ),
        shape=Shape.SENTENCES,
        most=_MOST_RUNS_IN_TEXT,
        code=True,
    )
    more = (Paragraph(f"… and {left} more.", Tone.HELP),) if left > 0 else ()
    blocks: tuple[Block, ...] = (table, *more) if runs else (Paragraph("None.", Tone.NOTE),)
    return Section("Suspect, invalid and failed runs", blocks)


def time_section(study: Study) -> OnPage | None:
    """Set-up overhead: the time around the measured windows, by step."""
    times = setup_overhead(study)
    if not times:
        return None
    measured = render_duration(sum(run.measured_seconds for run in study.runs))
    around = render_duration(sum(sum(seconds) for _, seconds in times))
    medians = (render_duration(median(seconds)) for _, seconds in times)
    totals = (render_duration(sum(seconds)) for _, seconds in times)
    table = Table(
        names=Column(title="step", cells=("measured", *(step for step, _ in times))),
        columns=(
            Column(title="median of a run", cells=("", *medians)),
            Column(title="all runs", cells=(measured, *totals)),
        ),
        style="narrow",
    )
    details = Details(f"{measured} measured, {around} of set-up overhead", (table,))
    return OnPage(lambda: (Section("Where the time went", (details,)),))


def _names_files(experiment: Experiment) -> bool:
    """Whether its text is not enough, because it names scripts, data, a set-up or a checkout of its own."""
    environments, cells = experiment.environments, experiment.cells
    if any(cell.scripts or cell.data is not None or cell.checkout for cell in cells):
        return True
    return any("setup_sql" in options for options in (*(e.options for e in environments), *(c.options for c in cells)))


def reproduction(study: Study) -> Section:
    """The experiment as it was written, and what to do with it."""
    experiment = study.plan.experiment
    file = Marked("experiment.toml", "code")
    command = Marked("pgstrata run experiment.toml", "code")
    beside = ", beside the files that it names:" if _names_files(experiment) else ":"
    how = (f"With pgstrata {study.version}, ", command, " with this as ", file, beside)
    blocks: tuple[Block, ...] = (
        Paragraph(f"Study {study.name}, plan {study.plan.identity}, created {study.created}."),
        Paragraph(how),
        Verbatim(experiment.text.rstrip("\n"), exact=True),
        *([OnPage(lambda: (Listing(notes),))] if (notes := say_notes(study.plan)) else []),
    )
    return Section("How to reproduce", blocks)
