"""The document and the JSON of a merged study: within parts, between parts, and for types of machines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, assert_never

from pgstrata.model.answer import ALL_CELLS, Comparison, Verdict
from pgstrata.model.experiment import Experiment
from pgstrata.model.merged import HOST, LEAST_INSTANCES, Between, Compared, MergedAnswer, TypeDifference, TypeEffect
from pgstrata.model.metrics import METRICS
from pgstrata.report.answer.matrix import make_field
from pgstrata.report.blocks.model import (
    Column,
    Document,
    Listing,
    Matrix,
    Paragraph,
    Remark,
    Section,
    Table,
    Tone,
    begin,
    end,
)
from pgstrata.report.figures.effects import NamedDifference, choose_domain, draw_differences
from pgstrata.report.figures.run_lines import break_label
from pgstrata.report.json.answer import comparison_fields, warning_fields
from pgstrata.report.json.documents import SCHEMA, pick_fields, render_document
from pgstrata.report.sentences.doubts import sum_up_kind
from pgstrata.report.sentences.findings import say_doubt_of
from pgstrata.report.sentences.names import count, name_environment, name_where, say_on
from pgstrata.report.sentences.verdicts import (
    name_baseline,
    render_interval,
    render_shown,
    shown_interval,
    tell_change,
    tell_interval,
    verdict_label,
)
from pgstrata.units import render_names

_MOST_NAMED: Final = 4
_MANY: Final = {HOST: "machines", "boot": "boots", "day": "days"}
_WITHIN: Final = (
    "Each part by itself: its environments against its baseline, block by block. Blocks belong to one part, and "
    "environments of different parts share none. The headlines of all parts share the error probability. `show` of a "
    "folder below `parts` shows everything of one part."
)
_EFFECTS: Final = (
    "Is the same difference larger or smaller than in the first part? The differences of the blocks of both parts are "
    "compared without pairing. Exploratory. Each part was measured until it had an answer of its own, so a difference "
    "that was found early may look a little larger than it is."
)
_LEVELS: Final = (
    "The metric itself in one part, compared with the first part. Nothing was measured side by side: everything else "
    "that differs between the parts (machine, day, background load) is in these figures. The blocks of a part do not "
    "show how much the figures would differ at another time. Exploratory."
)


def make_merged_document(answer: MergedAnswer) -> Document:
    """Everything that is to be said and shown of studies together."""
    experiment = answer.parts[0].study.plan.experiment
    blocks = sum(part.study.measured_blocks for part in answer.parts)
    sections = (
        _within(answer),
        *_between("How the differences differ", _EFFECTS, answer.effects, answer),
        *_between("How the parts themselves differ", _LEVELS, answer.levels, answer),
        *_types(answer),
        Section("What this does not say", (Listing(tuple(end(begin(text)) for text in say_limits(answer))),)),
    )
    return Document(
        name=f"Merged study {answer.name}",
        title=experiment.question,
        summary=f"{_count_parts(answer)} ({', '.join(part.name for part in answer.parts)}), {count(blocks, 'block')}.",
        answer=tuple(Paragraph(end(begin(text))) for text in say_merged(answer)),
        matrix=_matrix(answer),
        doubts=tuple(_sum_up_doubts(answer)),
        sections=sections,
        colophon=f"Merged study {answer.name} · plans "
        + ", ".join(dict.fromkeys(part.study.plan.identity for part in answer.parts)),
    )


def _matrix(answer: MergedAnswer) -> Matrix | None:
    """Environments by parts; None where there is but one effect."""
    experiment = answer.parts[0].study.plan.experiment
    found = {(item.comparison.environment, item.part): item.comparison for item in answer.comparisons}
    environments = [each for each in experiment.environments if any(name == each.name for name, _ in found)]
    parts = [part.name for part in answer.parts]
    if len(found) <= 1:
        return None
    return Matrix(
        title=f"Difference in {METRICS[experiment.metric].title} from {name_baseline(experiment)} of the same part",
        corner="environment",
        rows=tuple(name_environment(each, experiment) for each in environments),
        columns=tuple(parts),
        effects=tuple(
            tuple(make_field(found.get((each.name, part)), experiment.threshold) for part in parts)
            for each in environments
        ),
        soft=frozenset(place for place, each in enumerate(environments) if each.control is not None),
    )


def _count_parts(answer: MergedAnswer) -> str:
    noun = _MANY.get(answer.factor, "")
    return f"{len(answer.parts)} {noun}" if noun else f"{len(answer.parts)} levels of {answer.factor}"


def say_merged(answer: MergedAnswer) -> Iterator[str]:
    """For each environment, its verdict and effect in each part, and whether the verdict is the same in all parts."""
    experiment = answer.parts[0].study.plan.experiment
    base = name_baseline(experiment)
    for environment in dict.fromkeys(item.comparison.environment for item in answer.comparisons):
        found = [item for item in answer.comparisons if item.comparison.environment == environment]
        name = name_environment(experiment.environment(environment), experiment)
        where = say_on(name_where(found[0].comparison.cell, experiment), base)
        words = {verdict_label(item.comparison) for item in found}
        each = "; ".join(
            f"{item.part}: {render_shown(item.comparison) or 'no interval'}"
            + (f", {verdict_label(item.comparison)}" if len(words) > 1 else "")
            for item in found
        )
        said = (
            f"{words.pop()} on each of these {_count_parts(answer)}" if len(words) == 1 else "not the same everywhere"
        )
        yield f"{name} against {base}{where}: {said} ({each})"


def say_limits(answer: MergedAnswer) -> Iterator[str]:
    """What cannot be claimed."""
    yield f"the answer is about these {_count_parts(answer)}, and about no others"
    if answer.factor == HOST:
        kinds: dict[str, list[str]] = {}
        for part in answer.parts:
            kinds.setdefault(part.kind, []).append(part.name)
        for kind, names in kinds.items():
            if len(names) < LEAST_INSTANCES:
                yield (
                    f"nothing can be claimed about the type of {' and '.join(names)} ({kind or 'unknown'}): "
                    f"{count(len(names), 'machine')} of it, and a claim needs {LEAST_INSTANCES}"
                )
            else:
                yield f"that {', '.join(names)} are different machines is your statement: they look alike"
        yield "a difference between machines is confounded with the time at which each was measured"
    else:
        yield f"a difference between parts is confounded with everything else that changed with the {answer.factor}"
    if answer.unlike:
        shown = ", ".join(answer.unlike[:8]) + (", ..." if len(answer.unlike) > 8 else "")  # noqa: PLR2004
        yield f"these differ between the parts, and their effect is in every difference between parts: {shown}"


def _sum_up_doubts(answer: MergedAnswer) -> Iterator[Remark]:
    """One sentence for each kind of doubt; each of its cases names the parts that it is about."""
    kinds: dict[str, dict[str, dict[str, None]]] = {}
    about = [(each.part, each.doubt) for each in answer.warnings]
    about += [(each.part, doubt) for each in answer.comparisons for doubt in each.comparison.warnings]
    experiment = answer.parts[0].study.plan.experiment
    for part, doubt in about:
        kinds.setdefault(doubt.code, {}).setdefault(say_doubt_of(doubt, experiment).removesuffix("."), {})[part] = None
    for code, texts in kinds.items():
        found = sum_up_kind(code, [_name_parts(text, [*parts]) for text, parts in texts.items()])
        yield Remark(found.text, found.cases)


def _name_parts(text: str, parts: Sequence[str]) -> str:
    """The parts before the doubt; nothing before one about all of them."""
    named = render_names(parts, _MOST_NAMED)
    return f"{named}: {text}" if named else text


def _within(answer: MergedAnswer) -> Section:
    experiment = answer.parts[0].study.plan.experiment
    items = [(item.part, item.comparison) for item in answer.comparisons]
    comparisons = [item for _, item in items]
    shown = [
        NamedDifference(
            name=break_label(f"{part}: {_name(experiment, item)}"), comparison=item, label=verdict_label(item)
        )
        for part, item in items
    ]
    domain = choose_domain(comparisons, experiment.threshold)
    chart = draw_differences(
        shown, baseline=f"{name_baseline(experiment)} there", threshold=experiment.threshold, domain=domain
    )
    verdicts = tuple(map(verdict_label, comparisons))
    table = Table(
        names=Column(title=answer.factor, cells=tuple(part for part, _ in items)),
        columns=(
            Column(title="environment", cells=tuple(_name(experiment, item) for item in comparisons), words=True),
            Column(title="effect", cells=tuple(tell_change(item.effect) for item in comparisons)),
            Column(title="interval, %", cells=tuple(map(_interval_of, comparisons))),
            Column(title="blocks", cells=tuple(str(item.blocks) for item in comparisons)),
            Column(
                title="verdict", cells=verdicts, words=True, verdicts=tuple(item.verdict.value for item in comparisons)
            ),
        ),
    )
    title = f"Within each part, against {name_baseline(experiment)}"
    return Section(title, (Paragraph(_WITHIN, Tone.HELP), chart, table), brief=True)


def _name(experiment: Experiment, item: Comparison) -> str:
    return name_environment(experiment.environment(item.environment), experiment)


def _interval_of(item: Comparison) -> str:
    return tell_interval(shown_interval(item))


def _between(title: str, explained: str, items: Sequence[Between], answer: MergedAnswer) -> Iterator[Section]:
    if not items:
        return
    experiment = answer.parts[0].study.plan.experiment
    names = tuple(f"{item.part} against {item.reference}" for item in items)
    environments = tuple(name_environment(experiment.environment(item.environment), experiment) for item in items)
    columns = (
        Column(title="environment", cells=environments, words=True),
        Column(title="ratio", cells=tuple(tell_change(item.effect) for item in items)),
        Column(title="interval, %", cells=tuple(tell_interval(item.interval) for item in items)),
        Column(title="blocks", cells=tuple(f"{item.values} : {item.base_values}" for item in items)),
        Column(title="result", cells=tuple(map(_say_between, items)), words=True),
    )
    table = Table(names=Column(title=answer.factor, cells=names), columns=columns)
    yield Section(title, (Paragraph(explained, Tone.NOTE), table), brief=True)


def _say_between(item: Between) -> str:
    if item.verdict in {Verdict.BETTER, Verdict.WORSE}:
        return "differs"
    if item.verdict is Verdict.INSUFFICIENT:
        return "too few blocks"
    return {Verdict.EQUIVALENT: "no difference", Verdict.NEGLIGIBLE: "differs, negligible"}.get(item.verdict, "unclear")


def _types(answer: MergedAnswer) -> Iterator[Section]:
    known = [item for item in answer.types if item.effect is not None]
    if not known:
        return
    experiment = answer.parts[0].study.plan.experiment
    base = name_baseline(experiment)
    said = (
        *(say_type(item, base, experiment) for item in known),
        *(say_type_difference(item, base, experiment) for item in answer.type_differences),
    )
    note = (
        "Each machine counts once, whatever its number of blocks. The 95 % confidence intervals are by Student's t, "
        "between types in Welch's form. They assume that the machines are a random choice from all of their type, and "
        "that their logarithms are normally distributed. Exploratory: each interval by itself is wrong in at most 5 % "
        "of such studies."
    )
    yield Section("Types of machines", (Paragraph(note, Tone.NOTE), Listing(tuple(map(end, said)))), brief=True)


def say_type(item: TypeEffect, base: str, experiment: Experiment) -> str:
    """The effect on machines of one type, as a sentence."""
    name = name_environment(experiment.environment(item.environment), experiment)
    what = METRICS[experiment.metric].title
    figures = f"{tell_change(item.effect)} {render_interval(item.interval)}"
    return f"{item.kind}: {name} against {base} {figures} {what}, over {count(item.instances, 'machine')}"


def say_type_difference(item: TypeDifference, base: str, experiment: Experiment) -> str:
    """One type against another one, as a sentence that begins with the result."""
    metric = METRICS[experiment.metric].title
    match item.compared:
        case Compared.LEVEL:
            what = f"{metric} of {base}"
        case Compared.EFFECT:
            name = name_environment(experiment.environment(item.environment), experiment)
            what = f"the ratio of {name} to {base} in {metric}"
        case _:
            assert_never(item.compared)
    told = "differs" if item.differs else "no difference is shown"
    figures = f"{tell_change(item.effect)} {render_interval(item.interval)}"
    return (
        f"{item.kind} against {item.reference}: {what}: {told}, {figures}, "
        f"{count(item.instances, 'machine')} against {item.base_instances}"
    )


# ------------------------------------------------------------------------------------------------ JSON


def merged_json(answer: MergedAnswer) -> str:
    """The JSON document; comparisons have the fields of `show --json`, and the name of their part."""
    experiment = answer.parts[0].study.plan.experiment
    document = {
        "schema": SCHEMA,
        "merged": answer.name,
        "factor": answer.factor,
        "question": experiment.question,
        "metric": experiment.metric,
        "threshold": experiment.threshold,
        "parts": [
            {"name": part.name, "type": part.kind or None, "plan": part.study.plan.identity,
             "blocks": part.study.measured_blocks}
            for part in answer.parts
        ],
        "comparisons": [_comparison_json(item.part, item.comparison, experiment) for item in answer.comparisons],
        "effects_between": [_between_json(item) for item in answer.effects],
        "levels_between": [_between_json(item) for item in answer.levels],
        "types": [
            {**pick_fields(item, "environment instances effect"), "type": item.kind or None,
             **pick_fields(item, "interval")}
            for item in answer.types
        ],
        "types_between": [
            {"type": item.kind, **pick_fields(item, "reference environment compared instances base_instances effect"),
             **pick_fields(item, "interval")}
            for item in answer.type_differences
        ],
        "limits": list(say_limits(answer)),
        "warnings": [
            {"part": about.part or None, **fields}
            for about, fields in zip(
                answer.warnings, warning_fields(about.doubt for about in answer.warnings), strict=True
            )
        ],
    }  # fmt: skip
    return render_document(document)


def _comparison_json(part: str, item: Comparison, experiment: Experiment) -> dict[str, Any]:
    fields = comparison_fields(
        item,
        environment={"name": item.environment},
        reference=experiment.baseline,
        cell=item.cell if item.cell == ALL_CELLS else {"identity": item.cell},
        direction=METRICS[item.metric].direction,
    )
    return {"part": part, **fields}


def _between_json(item: Between) -> dict[str, Any]:
    return pick_fields(item, "environment part reference verdict effect values base_values interval")
