"""Associations of a live server as a document and for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from pgstrata.model.archive import COMMITS
from pgstrata.model.association import Associated, Association, Associations
from pgstrata.model.attribution import ValueInterval
from pgstrata.report.blocks.model import (
    Block,
    Column,
    ColumnPlace,
    Details,
    Document,
    Fact,
    Facts,
    Paragraph,
    Section,
    Table,
    Tone,
)
from pgstrata.report.json.documents import pick_fields, render_document
from pgstrata.report.live.frame import archive_document, archive_json
from pgstrata.report.live.limits import say_limits
from pgstrata.report.live.tables import title_of
from pgstrata.report.live.words import name_wait, say_dated, say_window
from pgstrata.units import render_count, render_duration

_DAY: Final = 86_400
_MOST_TOLD: Final = 5
_WEAK: Final = 0.1
"""Correlation below which a row is not told in words, however surely it is there."""
_MOST_SHOWN: Final = 12
_NARROWEST: Final = 20
_ROW: Final = "event rate held rho interval lead leads p adjusted resolved steps"
_HEAD: Final = "step unit steps all_steps longest held shapes parts limit"
_METHOD: Final = (
    "Rho is the rank correlation of what is new in each step, that is, of what neither series had in its steps before. "
    "It is that of the lag at which it is largest, and its interval of 95 % takes that choice into account. A positive "
    "lag: the series leads the load."
)
_CHANCE: Final = "Of the pairs that are called associated, at most one in twenty is so by chance, on average"


def make_associations_document(associated: Associated, version: str) -> Document:
    """The document of `correlate`."""
    found = associated.found
    return archive_document(
        associated.archive,
        f"Which waits go with what, from {say_window(found.span)}?",
        f"{say_dated(found.span)}, in steps of {render_duration(found.step)}",
        answer=answer_sentences(associated),
        doubts=(*doubt_sentences(associated), *say_limits(associated.facts.limits)),
        sections=_sections(associated),
        version=version,
    )


def answer_sentences(associated: Associated) -> Iterator[str]:
    """The strongest associations, then how many pairs were tested; without full stops."""
    found = associated.found
    resolved = [row for row in found.rows if row.resolved]
    # that throughput falls as a wait grows is what slows a server down
    strong = [row for row in resolved if abs(row.rho) >= _WEAK]
    told = sorted(strong, key=lambda row: (not _is_brake(row), -abs(row.rho)))[:_MOST_TOLD]
    yield from map(_say_row, told)
    tested = f"{render_count(len(found.rows), 'pair')} of a wait event and another series"
    if not found.rows:
        yield "Nothing could be compared: no wait event, or no other series, changes enough in this window"
    elif not resolved:
        yield (
            f"No association was found among {tested}; one with rho {_limit(found.limit)} would have been found in "
            "four of five such windows"
        )
    else:
        left = len(resolved) - len(told)
        more = f", {left} of them only in the table" if left else ""
        are = "is" if len(resolved) == 1 else "are"
        yield f"{len(resolved)} of {tested} {are} associated{more}. An association is not a cause"


def _is_brake(row: Association) -> bool:
    return row.rate == COMMITS and row.rho < 0


def _say_row(row: Association) -> str:
    direction = "goes with" if row.rho > 0 else "goes with a fall in"
    strength = f"rho {_rho(row.rho)} {_interval(row.interval)}"
    return f"Load in {name_wait(row.event)} {direction} {title_of(row.rate)} ({strength}), {_say_lag(row)}"


def _say_lag(row: Association) -> str:
    """Which leads by 10 s, and the lags that would fit as well."""
    first, last = row.leads
    fits = "" if first == last else f" ({_lag(first)} to {_lag(last)} would fit)"
    if row.lead == 0:
        return f"at the same time{fits}"
    return f"which {'leads' if row.lead > 0 else 'follows'} by {render_duration(abs(row.lead))}{fits}"


def _lag(seconds: int) -> str:
    return f"{seconds:+d} s" if seconds else "0 s"


def _rho(value: float) -> str:
    return f"{value:.2f}"


def _interval(interval: ValueInterval) -> str:
    return f"[{_rho(interval.low)}, {_rho(interval.high)}]"


def _limit(limit: float | None) -> str:
    return "an unknown size" if limit is None else _rho(limit)


def doubt_sentences(associated: Associated) -> Iterator[str]:
    """What limits the answer, without full stops."""
    found = associated.found
    if associated.clipped:
        yield f"the archive holds only {say_dated(associated.facts.span)}: the window was cut to it"
    if found.steps < found.all_steps:
        yield (
            f"{render_count(found.all_steps - found.steps, 'step')} of {found.all_steps} have no samples of sessions "
            "and were left out"
        )
    if found.unit > 1:
        yield f"series were read from sums of minutes: a lag shorter than {render_duration(found.step)} is not seen"
    if found.shapes:
        yield "effects with a fixed period were removed: two jobs in the same minutes would seem to be associated"
    if not found.held:
        yield "throughput is not known or does not change, so effects of demand could not be removed"
    effects = sum(row.resolved and not row.held and row.rate != COMMITS for row in found.rows)
    if found.held and effects:
        yield (
            f"throughput falls as both series of {render_count(effects, 'associated pair')} grow: there it is an "
            "effect, so its influence on them was not removed"
        )
    if found.limit is not None and any(row.resolved for row in found.rows):
        yield f"a further association with rho below {_limit(found.limit)} may have stayed unseen"
    yield "a single event, such as a step to another level, may not show: use `pgstrata explain`"


def _sections(associated: Associated) -> Iterator[Block]:
    found = associated.found
    resolved = [row for row in found.rows if row.resolved]
    rest = sorted((row for row in found.rows if not row.resolved), key=lambda row: row.p)
    if resolved:
        yield Section("Associated", (_table(resolved), Paragraph(f"{_METHOD} {_CHANCE}.", Tone.NOTE)), brief=True)
    if rest:
        shown = rest[:_MOST_SHOWN]
        title = f"Not resolved: {render_count(len(rest), 'pair')}"
        left = len(rest) - len(shown)
        note = (Paragraph(f"{render_count(left, 'further pair')} are not shown.", Tone.NOTE),) if left else ()
        yield Details(title, (_table(shown, soft=True), *note))
    yield Section("How it was compared", (Facts(tuple(_facts(associated))),))


def _table(rows: Sequence[Association], *, soft: bool = False) -> Table:
    return Table(
        names=Column(
            title="load in, with",
            cells=tuple(f"{name_wait(row.event)}, {title_of(row.rate)}" for row in rows),
            words=True,
        ),
        columns=(
            Column(
                title="rho [95 %]",
                cells=tuple(_rho(row.rho) for row in rows),
                beside=tuple(_interval(row.interval) for row in rows),
            ),
            Column(title="lag", cells=tuple(_lag(row.lead) for row in rows)),
            Column(title="adjusted p", cells=tuple(_p(row.adjusted) for row in rows)),
            Column(title="steps", cells=tuple(f"{row.steps:,}" for row in rows), place=ColumnPlace.MORE),
        ),
        soft=frozenset(range(len(rows))) if soft else frozenset(),
        breaks=_NARROWEST,
    )


def _p(value: float) -> str:
    return "< 0.0001" if value < 1e-4 else f"{value:.2g}"  # noqa: PLR2004 - four digits


def _facts(associated: Associated) -> Iterator[Fact]:
    found = associated.found
    yield Fact(name="archive", value=f"{associated.archive}, {say_dated(associated.facts.span)}")
    seen = f"{found.steps / found.all_steps * 100:.0f} %"
    yield Fact(name="steps", value=f"{found.steps:,} of {render_duration(found.step)}, {seen} of the window")
    yield Fact(name="lags", value=f"up to {render_duration(found.longest)} either way")
    yield Fact(name="taken out", value=", ".join(_taken_out(found)) or "nothing")
    yield Fact(name="pairs tested", value=f"{len(found.rows):,}")
    if found.parts:
        yield Fact(name="not tested", value=f"{render_count(found.parts, 'pair')} of a part and its own total")
    if found.constant:
        yield Fact(name="hardly changing", value="; ".join(map(_series, found.constant)))
    if found.limit is not None:
        yield Fact(name="detectable", value=f"rho of {_limit(found.limit)}, in four of five such windows")


def _taken_out(found: Associations) -> Iterator[str]:
    if found.held:
        yield "the influence of throughput on either series"
    for period in found.shapes:
        yield f"effects that repeat every {'day' if period == _DAY else render_duration(period)}"


def _series(name: str) -> str:
    """A rate by its title, a wait event by its name."""
    return title_of(name) if "/" not in name and name else name_wait(name)


def associations_json(associated: Associated) -> str:
    """The document of `correlate --json`."""
    found = associated.found
    return render_document(
        {
            **archive_json(
                associated.archive, associated.facts, answer_sentences(associated), doubt_sentences(associated)
            ),
            "window": pick_fields(found, "begin=span.begin end=span.end"),
            **pick_fields(found, _HEAD),
            "tested": len(found.rows),
            "constant": list(found.constant),
            "associations": [pick_fields(row, _ROW) for row in found.rows],
        }
    )
