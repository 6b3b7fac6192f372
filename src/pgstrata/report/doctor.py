"""What an examination of a host found: a verdict in a line, tables for people, JSON for programs. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pgstrata.model.doctor import Examination, Fitness, LayerFinding, Possible, Probe
from pgstrata.report.columns import wrap_text

_STYLES = {Possible.YES: "green", Possible.NOT_FOR_USER: "yellow", Possible.NOT_ON_HOST: "red"}
_FACTORS = ("factor", "possible", "what there is, or what it takes")
_PROBES = ("probe", "found")
_TEXT_WIDTH = 100
_GAP = 2
ONE_CLIENT = (
    "With clients = 1 a processor falls asleep between two transactions, and what is measured is mostly how fast it "
    "wakes up; two clients or more, or both ends on one CPU, measure PostgreSQL."
)


def say_verdict(examination: Examination) -> str:
    """How much can be compared here and whether the host is fit for measuring, with every reason against it."""
    head = (
        f"On this host {examination.possible} of {len(examination.layers)} factors can be compared as "
        f"{examination.user}; fit for measuring: {examination.fitness}"
    )
    match examination.fitness:
        case Fitness.NO:
            return f"{head}, because {'; '.join(examination.unfit)}."
        case Fitness.DOUBTFUL:
            return f"{head}, because {'; '.join(examination.doubts)}."
        case Fitness.YES:
            return f"{head}."


def render_terminal(examination: Examination, width: int) -> RenderableType:
    """Something that a rich console of so many columns can print."""
    alarm = examination.fitness is not Fitness.YES
    verdict = Text("\n".join(wrap_text(say_verdict(examination), width)), style="bold yellow" if alarm else "bold")
    note = Text("\n".join(wrap_text(ONE_CLIENT, width)), style="dim")
    return Group(
        verdict, _spaced(_factor_table(examination.layers)), _spaced(_probe_table(examination.probes)), _spaced(note)
    )


def _spaced(part: RenderableType) -> RenderableType:
    return Padding(part, (1, 0, 0, 0))


def _table(titles: Sequence[str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in titles[:-1]:
        table.add_column(title, no_wrap=True)
    table.add_column(titles[-1], overflow="fold")
    return table


def _factor_table(findings: Sequence[LayerFinding]) -> Table:
    table = _table(_FACTORS)
    for finding in findings:
        style = _STYLES.get(finding.possible, "dim")
        # Text, not str: square brackets would be read as markup
        table.add_row(Text(finding.key), Text(finding.possible, style=style), Text(finding.note))
    return table


def _probe_table(probes: Sequence[Probe]) -> Table:
    table = _table(_PROBES)
    for probe in probes:
        table.add_row(Text(probe.title), Text(_found(probe), style="yellow" if probe.doubt or probe.failure else ""))
    return table


def _found(probe: Probe) -> str:
    return f"not measured: {probe.failure}" if probe.failure else f"{'! ' if probe.doubt else ''}{probe.text}"


def render_text(examination: Examination) -> str:
    """The same as plain text."""
    factors = [(finding.key, str(finding.possible), finding.note) for finding in examination.layers]
    probes = [(probe.title, _found(probe)) for probe in examination.probes]
    parts = (
        wrap_text(say_verdict(examination), _TEXT_WIDTH),
        _plain(_FACTORS, factors),
        _plain(_PROBES, probes),
        wrap_text(ONE_CLIENT, _TEXT_WIDTH),
    )
    return "\n\n".join("\n".join(lines) for lines in parts)


def _plain(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns side by side; the last one goes on below itself where it is too long."""
    widths = [max(len(row[place]) for row in (titles, *rows)) + _GAP for place in range(len(titles) - 1)]
    indent = " " * sum(widths)
    lines = []
    for row in (titles, *rows):
        head = "".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False))
        lines += wrap_text(row[-1], _TEXT_WIDTH, first=head, rest=indent) if row[-1] else [head.rstrip()]
    return lines


# ---------------------------------------------------------------------------------------------------- JSON


def doctor_json(examination: Examination) -> str:
    """One JSON document, described in docs/reference/json.md."""
    document = {
        "schema": 1,
        "host": examination.host,
        "user": examination.user,
        "possible": examination.possible,
        "factors": len(examination.layers),
        "fit": str(examination.fitness),
        "doubts": list(examination.doubts),
        "unfit": list(examination.unfit),
        "layers": [
            {"layer": one.layer, "key": one.key, "possible": str(one.possible), "note": one.note}
            for one in examination.layers
        ],
        "probes": [
            {
                "name": one.name,
                "title": one.title,
                "text": one.text,
                "value": one.value,
                "unit": str(one.unit) if one.unit else None,
                "doubt": one.doubt,
                "failure": one.failure,
            }
            for one in examination.probes
        ],
    }
    return json.dumps(document, ensure_ascii=False, indent=2)
