"""What an examination of a host found: a verdict in a line, tables for people, JSON for programs. Pure."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pgstrata.model.changes import LOCAL
from pgstrata.model.doctor import Examination, Fitness, LayerFinding, Possible, Probe
from pgstrata.report.blocks.layout import wrap_text
from pgstrata.report.json.fields import pick_fields

_STYLES = {Possible.YES: "green", Possible.NOT_FOR_USER: "yellow", Possible.NOT_ON_HOST: "red"}
_FACTORS = ("factor", "possible", "what there is, or what it takes")
_PROBES = ("probe", "found")
_ELEVATED = ("factor", "with sudo")
_TEXT_WIDTH = 100
_GAP = 2
ONE_CLIENT = (
    "With clients = 1 a processor falls asleep between two transactions, and what is measured is mostly how fast it "
    "wakes up; two clients or more, or both ends on one CPU, measure PostgreSQL."
)


_SUDO_NOTE = (
    "pgstrata would run this with sudo and nothing else, as `sudo -n sh -c SCRIPT …`: {list} has every command. Who "
    "may run sh so may do anything; without sudo the factors that need it cannot be had, and all others can."
)


def say_verdict(examination: Examination) -> str:
    """How much can be compared here and whether the host is fit for measuring, with every reason against it."""
    place = "On this host" if examination.host == LOCAL else f"On {examination.host}"
    head = (
        f"{place} {examination.possible} of {len(examination.layers)} factors can be compared as "
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
    tables = [_factor_table(examination.layers), _probe_table(examination.probes)]
    parts: list[RenderableType] = [*tables, note]
    if examination.elevated:
        parts += [_elevated_table(examination), Text("\n".join(wrap_text(_say_sudo(examination), width)), style="dim")]
    return Group(verdict, *map(_spaced, parts))


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


def _elevated_table(examination: Examination) -> Table:
    table = _table(_ELEVATED)
    for row in _elevated_rows(examination):
        table.add_row(*map(Text, row))
    return table


def _elevated_rows(examination: Examination) -> list[tuple[str, str]]:
    """A line for each thing and factor: the programs of all commands for it, and what they change."""
    programs: dict[tuple[str, str], dict[str, None]] = {}
    for one in examination.elevated:
        family = one.key.partition("=")[0]
        programs.setdefault((family, one.what), {}).update(dict.fromkeys(one.programs))
    return [(key, f"{', '.join(sorted(names))}: {what}") for (key, what), names in programs.items()]


def _say_sudo(examination: Examination) -> str:
    there = "" if examination.host == LOCAL else f" --host {shlex.quote(examination.host)}"
    return _SUDO_NOTE.format(list=f"`pgstrata doctor{there} --json`")


def _found(probe: Probe) -> str:
    return f"not measured: {probe.failure}" if probe.failure else f"{'! ' if probe.doubt else ''}{probe.text}"


def render_text(examination: Examination) -> str:
    """The same as plain text."""
    factors = [(finding.key, str(finding.possible), finding.note) for finding in examination.layers]
    probes = [(probe.title, _found(probe)) for probe in examination.probes]
    parts = [
        wrap_text(say_verdict(examination), _TEXT_WIDTH),
        _plain(_FACTORS, factors),
        _plain(_PROBES, probes),
        wrap_text(ONE_CLIENT, _TEXT_WIDTH),
    ]
    if examination.elevated:
        parts += [_plain(_ELEVATED, _elevated_rows(examination)), wrap_text(_say_sudo(examination), _TEXT_WIDTH)]
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
        "layers": [pick_fields(one, "layer key possible note") for one in examination.layers],
        "probes": [pick_fields(one, "name title text value unit doubt failure") for one in examination.probes],
        "sudo": [pick_fields(one, "key what programs do undo") for one in examination.elevated],
    }
    return json.dumps(document, ensure_ascii=False, indent=2)
