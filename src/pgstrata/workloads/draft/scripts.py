"""From counted statements and facts of columns to scripts: variables, ranges, and places where a person must look."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from pgstrata.diagnosis.query_text import hide_constants
from pgstrata.model.draft import LOOK, ColumnFacts, CountedStatement, DraftScript, LeftOut
from pgstrata.units import render_digits, shorten
from pgstrata.workloads.draft.statements import QUERIES, How, Parameter, Statement, TableName, parse_statement

_RESERVED: Final = frozenset({"scale", "client_id", "default_seed", "random_seed"})
_ENOUGH: Final = 0.99
_FINEST: Final = 1000
_FEW: Final = 10
_ADDED: Final = 100
_SHOWN: Final = 60
_CATALOGUES: Final = frozenset({"pg_catalog", "information_schema"})
_LONGEST: Final = 64 << 10
_OF_APPLICATIONS: Final = (
    "pg_advisory_", "pg_column_size", "pg_get_serial_sequence", "pg_input_", "pg_notify", "pg_size_", "pg_sleep",
    "pg_try_advisory_", "pg_typeof",
)  # fmt: skip
"""Beginnings of functions whose names begin with pg_, and that applications call."""

Facts = Mapping[TableName, Sequence[ColumnFacts]]
"""Columns of each table as a statement names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """Statements that become scripts, those that do not, and how many were not looked at, with their share."""

    statements: tuple[tuple[CountedStatement, Statement], ...]
    left_out: tuple[LeftOut, ...]
    more: int
    more_share: float
    total: float

    @property
    def tables(self) -> tuple[TableName, ...]:
        """Tables of all chosen statements, each once."""
        return tuple(dict.fromkeys(table for _, one in self.statements for _, table in one.tables))


def choose(counted: Iterable[CountedStatement], top: int) -> Chosen:
    """The statements with the most time, at most `top` of them, and no more than cover 99 % of the total."""
    ordered = sorted(counted, key=lambda one: -one.seconds)
    total = sum(one.seconds for one in ordered) or 1.0
    chosen: list[tuple[CountedStatement, Statement]] = []
    left: list[LeftOut] = []
    more, more_share, covered = 0, 0.0, 0.0
    for one in ordered:
        share = one.seconds / total
        parsed = parse_statement(one.text[:_LONGEST]) if one.text is not None else None
        reason = _reason_against(one, parsed)
        if reason or parsed is None:
            left.append(LeftOut(text=_shorten(one.text or "(not shown)"), reason=reason, share=share))
        elif len(chosen) < top and covered < _ENOUGH:
            chosen.append((one, parsed))
            covered += share
        else:
            more, more_share = more + 1, more_share + share
    return Chosen(statements=tuple(chosen), left_out=tuple(left), more=more, more_share=more_share, total=total)


def _reason_against(one: CountedStatement, parsed: Statement | None) -> str:
    if one.text is None or parsed is None:
        return "its text is not shown to this role"
    if not one.top_level:
        return "it runs in a function: a script of the statement that calls the function runs it too"
    if parsed.keyword not in QUERIES:
        return "it is a utility statement"
    if len(one.text) > _LONGEST:
        return f"it is longer than {_LONGEST >> 10} kB"
    rendered = parsed.render(dict.fromkeys(parsed.parameters, "p"))
    if "\\" in rendered or ";" in rendered or "\0" in rendered:
        return "it contains a backslash or a semicolon, which have another meaning in scripts of pgbench"
    if _asks_catalogues(parsed):
        return "it queries system catalogues"
    if name := _function_of_the_server(parsed):
        return f"it calls {name}(), which is about the server"
    return ""


def _asks_catalogues(parsed: Statement) -> bool:
    """Whether it names a catalogue, or nothing but functions that are called by their whole names."""
    if not parsed.tables:
        return any(token.folded in _CATALOGUES for token in parsed.tokens)
    return any(table.schema in _CATALOGUES or table.name.startswith("pg_") for _, table in parsed.tables)


def _function_of_the_server(parsed: Statement) -> str:
    """The first function that it calls to ask or change the server itself, such as a reset of statistics; or none."""
    tokens = [token for token in parsed.tokens if token.kind != "space"]
    called = (one.folded for one, behind in pairwise(tokens) if one.kind == "name" and behind.text == "(")
    return next((name for name in called if name.startswith("pg_") and not name.startswith(_OF_APPLICATIONS)), "")


def _shorten(text: str) -> str:
    """One line without constants: pg_stat_statements keeps those of utility statements, passwords among them."""
    text = hide_constants(text[:_LONGEST])
    line = " ".join(re.sub(r"[^\x20-\x7e\xa0-\uffff]+", " ", text).split())
    return shorten(line, _SHOWN)


def make_scripts(chosen: Chosen, facts: Facts) -> Iterator[DraftScript]:
    """One script for each statement, numbered, with its weight among all."""
    calls = [one.calls for one, _ in chosen.statements]
    weights = _weights(calls)
    for number, ((one, statement), weight) in enumerate(zip(chosen.statements, weights, strict=True), 1):
        variables = [_Variable.of(parameter, statement, facts) for parameter in statement.parameters.values()]
        names = _names(variables)
        ranges = {each.parameter.number: each for each in variables}
        lines = [line for each in variables for line in each.lines(names, ranges)]
        share = one.seconds / chosen.total
        mean = render_digits(one.seconds / max(1, one.calls) * 1000)
        head = f"-- {share * 100:.1f} % of the total time: {one.calls:,} calls of {mean} ms (queryid {one.identity})"
        text = "\n".join((head, *lines, f"{statement.render(names)};")) + "\n"
        looks = sum(line.startswith(LOOK) for line in lines)
        yield DraftScript(
            name=f"{number:02}-{_file_name(statement)}.sql", text=text, weight=weight, share=share, looks=looks
        )


def _weights(calls: Sequence[int]) -> list[int]:
    """Whole numbers in the ratio of the calls, as fine as a thousandth of their sum, without a common divisor."""
    total = max(1, sum(calls))
    weights = [max(1, round(count / total * _FINEST)) for count in calls]
    divisor = math.gcd(*weights) or 1
    return [weight // divisor for weight in weights]


def _file_name(statement: Statement) -> str:
    keyword = statement.keyword
    table = next((table.name for _, table in statement.tables), "")
    return re.sub(r"[^a-z0-9]+", "-", f"{keyword} {table}".lower()).strip("-")[:40]


def _names(variables: Sequence[_Variable]) -> dict[int, str]:
    """A variable for each parameter: called like its column, and numbered where that is taken or not possible."""
    names: dict[int, str] = {}
    for each in variables:
        stem = re.sub(r"[^a-z0-9_]", "", each.column.lower())
        stem = stem if re.match(r"[a-z_]", stem) and stem not in _RESERVED else f"p{each.parameter.number}"
        name, number = stem, 2
        while name in names.values():
            name, number = f"{stem}_{number}", number + 1
        names[each.parameter.number] = name
    return names


@dataclass(frozen=True, slots=True, kw_only=True)
class _Variable:
    """A parameter with the column that it is compared with, if that is known."""

    parameter: Parameter
    facts: ColumnFacts | None

    @classmethod
    def of(cls, parameter: Parameter, statement: Statement, facts: Facts) -> _Variable:
        tables = dict.fromkeys(
            table for alias, table in statement.tables if parameter.qualifier in {"", alias, table.name}
        )
        if parameter.how is How.INSERTED:
            tables = dict.fromkeys([table for _, table in statement.tables][:1])
        found = {one for table in tables for one in facts.get(table, ()) if one.column == parameter.column}
        return cls(parameter=parameter, facts=found.pop() if len(found) == 1 else None)

    @property
    def column(self) -> str:
        """Name of the column, or a word for the use."""
        return self.parameter.column or {How.LIMIT: "limit"}.get(self.parameter.how, "")

    def lines(self, names: Mapping[int, str], ranges: Mapping[int, _Variable]) -> Iterator[str]:
        """How the variable is set, or why a person must look."""
        name = names[self.parameter.number]
        if reason := self.doubt():
            yield f"{LOOK} {name} {reason}"
            return
        facts, (low, high) = self._known()
        yield f"-- {name}: {_say(facts)}, {low} to {high} in its statistics{self._remark(facts)}"
        begin = self.parameter.lower
        if self.parameter.how is How.ADDED:
            yield f"\\set {name} random(1, {_ADDED})"
        elif begin in names and not ranges[begin].doubt():
            yield f"\\set {name} random(:{names[begin]}, {high})"
        else:
            yield f"\\set {name} random({low}, {high})"

    def _remark(self, facts: ColumnFacts) -> str:
        remarks = []
        if self.parameter.how is How.ADDED:
            remarks.append(f"; the value that is added is not known: 1 to {_ADDED} is a guess")
        elif self.parameter.lower:
            remarks.append("; it is the end of a range, whose width is a guess")
        if 0 < facts.distinct <= _FEW:
            remarks.append(f"; {facts.distinct:g} distinct {'value' if facts.distinct == 1 else 'values'}")
        if not facts.whole:
            remarks.append("; whole numbers only")
        return "".join(remarks)

    def _known(self) -> tuple[ColumnFacts, tuple[int, int]]:
        facts = self.facts
        assert facts is not None
        assert facts.low is not None
        assert facts.high is not None
        return facts, (math.ceil(facts.low), math.floor(facts.high))

    def doubt(self) -> str:
        """Why a person must look; empty where the statistics give a range."""
        match self.parameter.how:
            case How.LIMIT:
                return "is the number of rows of a LIMIT or OFFSET: give it a value"
            case How.ARRAY:
                return "is an array: write ARRAY[…] with the usual number of variables"
            case How.SEVERAL:
                return "stands for a list of constants of unknown length: write the list"
            case How.UNKNOWN:
                cast = f" ({self.parameter.cast})" if self.parameter.cast else ""
                return f"is not compared with a column{cast}: give it a value"
            case _:
                return self._doubt_of_column()

    def _doubt_of_column(self) -> str:
        facts, column = self.facts, _clean(self.parameter.column)
        if facts is None:
            return f"is compared with {column}, but its table is not clear or not visible to this role: give it a value"
        if not facts.numeric:
            distinct = f", {facts.distinct:g} distinct values" if facts.distinct > 1 else ""
            return f"is a value of {_say(facts)}{distinct}: give it a value, because only numbers are drawn"
        if self.parameter.how is How.INSERTED and facts.unique:
            return f"is a new value of {_say(facts)}, which is in a unique index: use DEFAULT, or unused numbers"
        if facts.low is None or facts.high is None or math.ceil(facts.low) > math.floor(facts.high):
            remedy = "ANALYZE the table, let this role read it, or give a range"
            return f"is a value of {_say(facts)}, which has no statistics here: {remedy}"
        return ""


def _say(facts: ColumnFacts) -> str:
    return _clean(f"{facts.table}.{facts.column} ({facts.type})")


def _clean(name: str) -> str:
    """A name of the server's on one line of a comment."""
    return re.sub(r"[^\x20-\x7e\xa0-\uffff]+|\\", "?", name)
