"""The end of a report: rig, servers, settings, suspect, invalid and failed runs, limits, reproduction."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from pgstrata.compare import exclusive_settings
from pgstrata.model.answer import Answer
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
    NO_RESULT,
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
from pgstrata.report.sentences.names import count, join_names, name_environment
from pgstrata.report.sentences.reasons import say_notes, say_reason
from pgstrata.units import render_bytes, render_duration

_MOST_RUNS_IN_TEXT = 20
_MOST_RUNS = 200
_MOST_DIFFERENCES = 200
_MOST_NAMED = 4
_MOST_DIGITS = 12
_SIZES = {"B": 1, "kB": 1 << 10, "MB": 1 << 20}


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
    groups = (Section("Machine", (rig,)), Section("Servers", group_servers(study)))
    return Section("Where it was measured", groups, parallel=True)


def settings_section(answer: Answer) -> Section:
    """Settings that were asked for, those of all environments first, and on a page what differs from defaults.

    A page also has all facts that were observed to differ between environments.
    """
    study = answer.study
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
    return Section("Settings", (*blocks, OnPage(lambda: (*_changed_settings(answer), *_fingerprints(study)))))


def _changed_settings(answer: Answer) -> Iterator[Block]:
    """Every setting that is not PostgreSQL's default in some environment, whoever set it."""
    experiment = answer.study.plan.experiment
    names = {each.name: name_environment(each, experiment) for each in experiment.environments}
    told = {environment for environment, _ in answer.changed_settings}
    found: dict[str, dict[str, list[str]]] = {}
    defaults: dict[str, dict[str, None]] = {}
    for environment, setting in answer.changed_settings:
        value = _with_unit(setting.value, setting.unit)
        found.setdefault(setting.name, {}).setdefault(value, []).append(names[environment])
        defaults.setdefault(setting.name, {})[_with_unit(setting.default, setting.unit)] = None
    if not found:
        return
    shown = sorted(found)[:_MOST_DIFFERENCES]
    table = Table(
        names=Column(title="setting", cells=tuple(shown)),
        columns=(
            Column(title="value", cells=tuple(_say_values(found[name], len(told)) for name in shown), words=True),
            Column(title="PostgreSQL's default", cells=tuple(", ".join(defaults[name]) for name in shown), words=True),
        ),
        code=True,
        style="facts",
    )
    left = len(found) - len(shown)
    more = (Paragraph(f"… and {left} more.", Tone.NOTE),) if left else ()
    yield Details(f"Settings that differ from PostgreSQL's defaults ({len(found)})", (table, *more))


def _say_values(values: Mapping[str, Sequence[str]], environments: int) -> str:
    """Each value with the environments that have it; the value alone where all have it."""
    if [len(names) for names in values.values()] == [environments]:
        return next(iter(values))
    return "; ".join(f"{value} ({_name_some(names)})" for value, names in values.items())


def _name_some(names: Sequence[str]) -> str:
    left = len(names) - _MOST_NAMED
    return join_names([*names[:_MOST_NAMED], f"{left} more"] if left > 0 else names)


def _with_unit(value: str, unit: str) -> str:
    """128 MB for 16384 units of 8kB; other values as the server has them."""
    size = _SIZES.get(unit.removeprefix("8")) or 0
    blocks = 8 if unit.startswith("8") else 1
    if size and value.isdecimal() and len(value) <= _MOST_DIGITS and value != "0":
        return render_bytes(int(value) * size * blocks)
    if not value:
        return "(empty)"
    return f"{value} {unit}" if unit and not size and value != "0" else value


def _fingerprints(study: Study) -> tuple[Block, ...]:
    experiment = study.plan.experiment
    differences = differing_facts(study)
    blocks: list[Block] = [
        Paragraph(f"Only in {' and '.join(servers)} ({len(names)}): {', '.join(names)}")
        for servers, names in exclusive_settings(study.environments, experiment)
    ]
    shown, left = differences[:_MOST_DIFFERENCES], len(differences) - _MOST_DIFFERENCES
    if shown:
        told = [tuple(NO_RESULT if value is None else value or "(empty)" for value in values) for _, values in shown]
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


def _server_digests(study: Study) -> tuple[Fact, ...]:
    """Each binary once, with the environments that ran it."""
    found: dict[str, list[str]] = {}
    for environment in observed_environments(study):
        if digest := study.environments[environment.name].facts.get("server.digest"):
            found.setdefault(digest, []).append(name_environment(environment, study.plan.experiment))
    return tuple(Fact(name=_name_some(names), value=digest) for digest, names in found.items())


def reproduction(study: Study) -> Section:
    """The experiment as it was written, and what to do with it."""
    experiment = study.plan.experiment
    file = Marked("experiment.toml", "code")
    command = Marked("pgstrata run experiment.toml", "code")
    beside = ", beside the files that it names:" if _names_files(experiment) else ":"
    how = (f"With pgstrata {study.version}, ", command, " with this as ", file, beside)
    digests = _server_digests(study)
    blocks: tuple[Block, ...] = (
        Paragraph(f"Study {study.name}, plan {study.plan.identity}, created {study.created}."),
        *([OnPage(lambda: (Facts(digests, title="SHA-256 of the server's binary"),))] if digests else []),
        Paragraph(how),
        Verbatim(experiment.text.rstrip("\n"), exact=True),
        *([OnPage(lambda: (Listing(notes),))] if (notes := say_notes(study.plan)) else []),
    )
    return Section("How to reproduce", blocks)
