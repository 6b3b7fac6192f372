"""What an examination of a host found: a verdict in a line, tables for people, JSON for programs. Pure."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pgstrata.model.changes import LOCAL
from pgstrata.model.doctor import Examination, Fitness, Possible, Probe
from pgstrata.report.blocks.layout import wrap_text
from pgstrata.report.json.fields import pick_fields

_STYLES = {Possible.YES: "green", Possible.NOT_FOR_USER: "yellow", Possible.NOT_ON_HOST: "red"}
_FACTORS = ("factor", "possible", "what there is, or what it takes")
_PROBES = ("probe", "found")
_ELEVATED = ("factor", "with sudo")
_TEXT_WIDTH = 100
# Titles and rows; the style of a cell on a terminal stands beside its text.
_Table = tuple[Sequence[str], Sequence[Sequence[str | tuple[str, str]]]]
_GAP = 2
ONE_CLIENT = (
    "With clients = 1 a processor falls asleep between two transactions, and what is measured is mostly how fast it "
    "wakes up; two clients or more, or both ends on one CPU, measure PostgreSQL."
)


_SUDO_NOTE = (
    "pgstrata would run this with sudo and nothing else, as `sudo -n /bin/sh -c SCRIPT …`: {list} has every command. "
    "Who may run sh so may do anything; without sudo the factors that need it cannot be had, and all others can."
)


def say_verdict(examination: Examination) -> str:
    """How much can be compared here and whether the host is fit for measuring, with every reason against it."""
    place = "On this host" if examination.host == LOCAL else f"On {examination.host}"
    head = (
        f"{place} {examination.possible} of {len(examination.layers)} factors can be compared as "
        f"{examination.user}; fit for measuring: {examination.fitness}"
    )
    against = {Fitness.NO: examination.unfit, Fitness.DOUBTFUL: examination.doubts}.get(examination.fitness, ())
    return f"{head}, because {'; '.join(against)}." if against else f"{head}."


def render_terminal(examination: Examination, width: int) -> RenderableType:
    """Something that a rich console of so many columns can print."""
    alarm = examination.fitness is not Fitness.YES
    verdict = Text("\n".join(wrap_text(say_verdict(examination), width)), style="bold yellow" if alarm else "bold")
    parts = (
        Text("\n".join(wrap_text(part, width)), style="dim") if isinstance(part, str) else _table(part)
        for part in _parts(examination)
    )
    return Group(verdict, *(Padding(part, (1, 0, 0, 0)) for part in parts))


def _parts(examination: Examination) -> Iterator[_Table | str]:
    """Tables and notes, in the order in which they are shown."""
    yield (
        _FACTORS,
        [(one.key, (str(one.possible), _STYLES.get(one.possible, "dim")), one.note) for one in examination.layers],
    )
    yield (
        _PROBES,
        [(one.title, (_found(one), "yellow" if one.doubt or one.failure else "")) for one in examination.probes],
    )
    yield ONE_CLIENT
    if examination.elevated:
        yield _ELEVATED, _elevated_rows(examination)
        yield _say_sudo(examination)


def _table(part: _Table) -> Table:
    titles, rows = part
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in titles[:-1]:
        table.add_column(title, no_wrap=True)
    table.add_column(titles[-1], overflow="fold")
    for row in rows:
        # Text, not str: square brackets would be read as markup
        table.add_row(*(Text(cell) if isinstance(cell, str) else Text(cell[0], style=cell[1]) for cell in row))
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
    parts = [
        wrap_text(part, _TEXT_WIDTH) if isinstance(part, str) else _plain(part)
        for part in (say_verdict(examination), *_parts(examination))
    ]
    return "\n\n".join("\n".join(lines) for lines in parts)


def _plain(part: _Table) -> list[str]:
    """Columns side by side; the last one goes on below itself where it is too long."""
    titles, styled = part
    rows = [tuple(cell if isinstance(cell, str) else cell[0] for cell in row) for row in styled]
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
        **pick_fields(examination, "host user possible"),
        "factors": len(examination.layers),
        **pick_fields(examination, "fit=fitness doubts unfit"),
        "layers": [pick_fields(one, "layer key possible note") for one in examination.layers],
        "probes": [pick_fields(one, "name title text value unit doubt failure") for one in examination.probes],
        "sudo": [pick_fields(one, "key what programs do undo") for one in examination.elevated],
    }
    return json.dumps(document, ensure_ascii=False, indent=2)
