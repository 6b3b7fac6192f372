"""What an examination of a host found: a verdict in a line, tables for people, JSON for programs. Pure."""

import shlex
from collections.abc import Sequence
from typing import Final

from pgstrata.model.changes import LOCAL
from pgstrata.model.doctor import Examination, Fitness, Probe
from pgstrata.report.blocks.layout import wrap_text
from pgstrata.report.json.documents import pick_fields, render_document

MOST_COLUMNS: Final = 100
_GAP = 2
ONE_CLIENT = (
    "With clients = 1 a CPU goes idle between two transactions, and most of what is measured is how fast it wakes up. "
    "Two clients or more, or client and server on one CPU, measure PostgreSQL."
)
_SUDO_NOTE = (
    "pgstrata would run this with sudo and nothing else, as `sudo -n /bin/sh -c SCRIPT …`: {list} has every command. "
    "A user who may run sh like this may do anything. Without sudo only the factors that need it are missing."
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


def render_text(examination: Examination, columns: int = MOST_COLUMNS) -> str:
    """The verdict, then tables and notes, in lines of at most so many characters."""
    factors = [(one.key, str(one.possible), one.note) for one in examination.layers]
    parts = [
        wrap_text(say_verdict(examination), columns),
        _table([("factor", "possible", "what there is, or what it takes"), *factors], columns),
        _table([("probe", "found"), *((one.title, _found(one)) for one in examination.probes)], columns),
        wrap_text(ONE_CLIENT, columns),
    ]
    if examination.elevated:
        parts.append(_table([("factor", "with sudo"), *_elevated_rows(examination)], columns))
        parts.append(wrap_text(_say_sudo(examination), columns))
    return "\n\n".join("\n".join(lines) for lines in parts)


def _table(rows: Sequence[tuple[str, ...]], columns: int) -> list[str]:
    """Columns side by side; the last one goes on below itself where it is too long."""
    widths = [max(len(row[place]) for row in rows) + _GAP for place in range(len(rows[0]) - 1)]
    indent = " " * sum(widths)
    lines = []
    for row in rows:
        head = "".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False))
        lines += wrap_text(row[-1], columns, first=head, rest=indent) if row[-1] else [head.rstrip()]
    return lines


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
    return render_document(document)
