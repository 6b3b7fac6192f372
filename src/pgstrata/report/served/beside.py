"""Two studies beside each other, where both have the same cells and environments: figures, and no verdict."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pgstrata.errors import ParseError
from pgstrata.model.answer import Verdict
from pgstrata.model.metrics import METRICS
from pgstrata.report.blocks.model import Column, Document, Paragraph, Section, Table, Tone
from pgstrata.report.sentences.causes import readable
from pgstrata.units import render_count, render_digits, render_percent_change, render_value

_NO_VERDICT: Final = (
    "Differences between the two studies are not paired: the studies were measured at different times, perhaps on "
    "different machines. So there is no verdict on them."
)
_NOTHING: Final = "They have no cell and environment in common in which both compare the same metric."
_BASELINE: Final = "baseline"

Key = tuple[str, str, str]
"""Metric, cell and environment, as texts that are equal where these are the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What one study says of an environment in a cell: its median in the base unit, its effect as text."""

    metric: str
    cell: str
    environment: str
    median: float | None
    effect: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyFigures:
    """All of them of one study, by what has to be the same in another one; in the order of the study."""

    title: str
    figures: Mapping[Key, Figures] = field(default_factory=dict)


def read_figures(text: str, title: str) -> StudyFigures:
    """Of what `pgstrata show --json` has printed; ParseError where it is no such document."""
    try:
        document = json.loads(text)
        figures = dict(_read(document))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ParseError("the answer of the study cannot be read", where=title, remedy="use `pgstrata show`") from error
    return StudyFigures(title=title, figures=figures)


def make_beside_document(first: StudyFigures, second: StudyFigures, version: str) -> Document:
    """Medians and effects of both, for what they have in common, in the order of the first."""
    common = [key for key in first.figures if key in second.figures]
    pairs = [(first.figures[key], second.figures[key]) for key in common]
    said = (Paragraph(_NO_VERDICT), Paragraph(_legend(first, second), Tone.MINOR)) if pairs else (Paragraph(_NOTHING),)
    return Document(
        name="Two studies",
        title=f"{readable(first.title)} · {readable(second.title)}",
        summary="side by side",
        answer=said,
        doubts=(),
        sections=tuple(_sections(pairs)),
        colophon=f"pgstrata {version}",
    )


def _sections(pairs: list[tuple[Figures, Figures]]) -> Iterator[Section]:
    for metric in dict.fromkeys(one.metric for one, _ in pairs):
        rows = [pair for pair in pairs if pair[0].metric == metric]
        yield Section(
            title=METRICS[metric].title.capitalize() if metric in METRICS else readable(metric),
            blocks=(_table(rows),),
        )


def _table(rows: list[tuple[Figures, Figures]]) -> Table:
    return Table(
        names=Column(title="cell", cells=tuple(readable(one.cell) for one, _ in rows)),
        columns=(
            Column(title="environment", cells=tuple(readable(one.environment) for one, _ in rows), words=True),
            Column(title="median, A", cells=tuple(_value(one) for one, _ in rows)),
            Column(title="median, B", cells=tuple(_value(other) for _, other in rows)),
            Column(title="effect, A", cells=tuple(one.effect for one, _ in rows)),
            Column(title="effect, B", cells=tuple(other.effect for _, other in rows)),
        ),
    )


def _legend(first: StudyFigures, second: StudyFigures) -> str:
    return (
        f"A: {readable(first.title)}. B: {readable(second.title)}. Effects are those within each study, against its "
        "own baseline, with their intervals."
    )


def _value(figures: Figures) -> str:
    if figures.median is None:
        return ""
    known = METRICS.get(figures.metric)
    return render_digits(figures.median, 4) if known is None else render_value(figures.median, known.unit)


def _read(document: Mapping[str, Any]) -> Iterator[tuple[Key, Figures]]:
    baseline = document["baseline"]
    for item in document["comparisons"]:
        if not isinstance(item["cell"], dict) or item["environment"]["control"] is not None:
            continue
        if item["reference"] == baseline["name"]:
            yield _one(item, baseline, item["baseline_value"], _BASELINE)
        yield _one(item, item["environment"], item["value"], _effect(item))


def _one(
    item: Mapping[str, Any], environment: Mapping[str, Any], median: float | None, effect: str
) -> tuple[Key, Figures]:
    cell = {key: value for key, value in item["cell"].items() if key != "identity"}
    levels = environment["levels"]
    key = (str(item["metric"]), json.dumps(cell, sort_keys=True), json.dumps(levels, sort_keys=True))
    return key, Figures(
        metric=str(item["metric"]),
        cell=_name_cell(cell),
        environment=", ".join(map(str, levels.values())) or str(environment["name"]),
        median=None if median is None else float(median),
        effect=effect,
    )


def _name_cell(cell: Mapping[str, Any]) -> str:
    scale = "" if cell["scale"] is None else f", scale {cell['scale']}"
    return f"{cell['workload']}{scale}, {render_count(int(cell['clients']), 'client')}"


def _effect(item: Mapping[str, Any]) -> str:
    if item["effect"] is None:
        return ""
    change = render_percent_change(float(item["effect"]))
    inner = item.get("equivalence_interval") if item.get("verdict") == Verdict.EQUIVALENT else None
    interval = inner or item["interval"]
    if interval is None:
        return change
    low, high = (render_percent_change(float(each)).removesuffix(" %") for each in interval)
    return f"{change} [{low}, {high}]"
