"""Plans of the statements of a workload: asked for in one psql that executes none, kept as evidence, and read.

Each statement is explained in a transaction of its own that may not write, has little time and is rolled back. It
reaches the server as the content of a quoted text, so that psql finds no commands of its own in it. Which values it is
planned with follows the protocol: statements that are prepared once are planned for parameters of any value, others for
values each time. Servers before 12 cannot be asked for the former.

Evidence is a text: `statement (planned with WHAT)`, then its lines behind `> `, what EXPLAIN said behind `| ` as it is,
or why there is no plan behind `! `.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pgstrata.diagnosis.queries import JIT
from pgstrata.diagnosis.query_text import hide_constants
from pgstrata.errors import ParseError, SqlError
from pgstrata.libpq import quote_dollars
from pgstrata.model.experiment import Protocol
from pgstrata.model.query_plans import PlannedWith, QueryPlan
from pgstrata.ports.collector import PLANS, CaptureSubject
from pgstrata.ports.driver import Statement
from pgstrata.ports.server import PartAnswer

_HEAD: Final = re.compile(r"statement \(planned with (?P<with>[a-z]+)\)")
# a node's line ends like "(cost=0.29..8.31 rows=1 width=97)"
_NODE: Final = re.compile(r"(?P<indent>\s*)(?:->\s+)?(?P<node>\S(?:.*\S)?)\s+\(cost=[^()]*\)")
# "InitPlan 1 (returns $0)" up to 16, "InitPlan 1" from 17 on; what is numbered has no other name
_PART: Final = re.compile(r"\s*(?P<part>InitPlan|SubPlan|CTE (?P<name>.+?))(?: \d+)?(?: \(returns .*\))?")
_WORKERS: Final = re.compile(r"\s*Workers Planned: (?P<number>\d+)")
_JIT: Final = "JIT:"


@dataclass(slots=True, kw_only=True)
class _Entry:
    planned_with: PlannedWith
    statement: list[str] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    error: list[str] = field(default_factory=list)


def render_plans(plans: Iterable[QueryPlan]) -> bytes:
    """Plans as evidence; their shapes are not in it, because they are read from their texts."""
    lines: list[str] = []
    for plan in plans:
        lines.append(f"statement (planned with {plan.planned_with})")
        for sign, text in ((">", plan.statement), ("|", plan.text), ("!", plan.error)):
            lines += [f"{sign} {line}" for line in text.splitlines() if text]
    return "".join(f"{line}\n" for line in lines).encode()


def parse_plans(evidence: bytes) -> tuple[QueryPlan, ...]:
    """Plans from evidence, with their shapes.

    Raises:
        ParseError: a line has an unknown shape.
    """
    return tuple(_plan(entry) for entry in _entries(evidence.decode("utf-8", "replace")))


def parse_shape(text: str) -> tuple[str, ...]:
    """What makes a plan another one, from what EXPLAIN says in its format TEXT, costs included.

    One line for each node, indented by its depth; below a Gather the number of workers planned; last JIT.
    """
    found: list[tuple[int, str]] = []
    for line in text.splitlines():
        if match := _NODE.fullmatch(line):
            found.append((len(match["indent"]), match["node"]))
        elif match := _PART.fullmatch(line):
            found.append((len(line) - len(line.lstrip()), match["part"]))
        elif match := _WORKERS.fullmatch(line):
            found.append((len(line) - len(line.lstrip()), f"{match['number']} workers planned"))
        elif line.rstrip() == _JIT:
            found.append((0, JIT))
    return tuple(_indented(found))


def _indented(lines: Iterable[tuple[int, str]]) -> Iterator[str]:
    """Depths instead of columns: these differ between versions."""
    above: list[int] = []
    for column, text in lines:
        while above and above[-1] >= column:
            above.pop()
        yield "  " * len(above) + text
        above.append(column)


def _plan(entry: _Entry) -> QueryPlan:
    statement, text, error = ("\n".join(lines) for lines in (entry.statement, entry.text, entry.error))
    return QueryPlan(
        statement=statement, planned_with=entry.planned_with, shape=parse_shape(text), text=text, error=error
    )


def _entries(text: str) -> list[_Entry]:
    found: list[_Entry] = []
    for line in text.split("\n")[:-1]:
        head = _HEAD.fullmatch(line)
        if head is not None:
            found.append(_Entry(planned_with=_planned_with(head["with"])))
            continue
        sign, content = line[:1], line[2:]
        if not found or line[1:2] != " " or sign not in {">", "|", "!"}:
            raise ParseError(f"unknown shape of a line: {line[:200]!r}", where=PLANS)
        entry = found[-1]
        {">": entry.statement, "|": entry.text, "!": entry.error}[sign].append(content)
    return found


def _planned_with(text: str) -> PlannedWith:
    try:
        return PlannedWith(text)
    except ValueError:
        raise ParseError(f"plans with {text!r} are not known", where=PLANS) from None


_EXPLAINED: Final = frozenset({"SELECT", "INSERT", "UPDATE", "DELETE", "MERGE", "VALUES", "WITH"})
_WITHOUT_PLAN: Final = frozenset({
    "ABORT", "BEGIN", "CHECKPOINT", "COMMIT", "DEALLOCATE", "DISCARD", "END", "LISTEN", "LOCK", "NOTIFY", "RELEASE",
    "RESET", "ROLLBACK", "SAVEPOINT", "SET", "SHOW", "START", "UNLISTEN",
})  # fmt: skip
_MOST: Final = 100
_GENERIC_OPTION_SINCE: Final = 160000
_GENERIC_MODE_SINCE: Final = 120000
_LIMITS: Final = "SET LOCAL statement_timeout = '2s'; SET LOCAL lock_timeout = '500ms';"
_NUMBERS_OF_PLANS: Final = r"""
    \(cost=[^()'"]*\) | (?:Sub|Init)Plan\ \d+
    | (?:Workers\ Planned|Planned\ Partitions|Subplans\ Removed|Functions):\ \d+
"""
_DATA: Final = "22"
"""Beginning of the SQLSTATEs of errors that quote values. Other errors quote names, or the place of a syntax error."""
_QUOTED: Final = re.compile(r'"[^"]*"?')
_CONSTANT: Final = re.compile(r"""\"['0-9][^"]*"?""")
_NOT_EXPLAINED: Final = "only SELECT, INSERT, UPDATE, DELETE, MERGE, VALUES and WITH are explained"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A statement as it is explained; `error` where it is not."""

    text: str
    explained: str = ""
    parameters: int = 0
    error: str = ""


class PlanExplainer:
    """Implements `ports.Explainer`."""

    def capture(self, subject: CaptureSubject, statements: Sequence[Statement], protocol: Protocol) -> bytes:
        server = subject.server
        version = server.build.version.number
        with_ = planned_with(version, protocol, server.environment.settings)
        asked = choose_statements(statements, with_)
        if not asked:
            return b""
        wanted = (one for one in asked if not one.error)
        parts = [render_part(one, with_, version, place) for place, one in enumerate(wanted)]
        try:
            told = subject.sql.answers(server.address, parts)
        except SqlError as error:
            told = (PartAnswer(error=error.what, sqlstate=error.sqlstate),) * len(parts)
        return render_plans(_answers(asked, with_, told))

    def parse(self, evidence: bytes) -> tuple[QueryPlan, ...]:
        return parse_plans(evidence)


def planned_with(version: int, protocol: Protocol, settings: Mapping[str, str]) -> PlannedWith:
    """What most executions of a statement are planned with, as far as the server can be asked for such a plan."""
    asked = settings.get("plan_cache_mode", "auto")
    prepared = protocol is Protocol.PREPARED and asked != "force_custom_plan"
    return PlannedWith.PARAMETERS if prepared and version >= _GENERIC_MODE_SINCE else PlannedWith.VALUES


def choose_statements(statements: Iterable[Statement], with_: PlannedWith) -> tuple[Asked, ...]:
    """The statements that have a plan, equal ones once; what no plan can be had of says why."""
    found: dict[str, Asked] = {}
    for statement in statements:
        if statement.keyword not in _WITHOUT_PLAN:
            asked = _ask(statement, with_, too_many=len(found) >= _MOST)
            found.setdefault(asked.text, asked)
    return tuple(found.values())[: _MOST + 1]


def _ask(statement: Statement, with_: PlannedWith, *, too_many: bool) -> Asked:
    text = statement.with_parameters
    if too_many:
        return Asked(text=text, error=f"only {_MOST} statements are explained")
    if statement.keyword not in _EXPLAINED:
        return Asked(text=text, error=_NOT_EXPLAINED)
    explained = text if with_ is PlannedWith.PARAMETERS else statement.with_values
    return Asked(text=text, explained=explained, parameters=statement.parameters)


def render_part(one: Asked, with_: PlannedWith, version: int, number: int) -> str:
    """psql's input for the plan of a statement, in a transaction of its own; `number` is unique in the script."""
    return "\n".join(("BEGIN READ ONLY;", _LIMITS, *_explain(one, with_, version, number), "ROLLBACK;"))


def _explain(one: Asked, with_: PlannedWith, version: int, number: int) -> list[str]:
    if with_ is PlannedWith.VALUES:
        return [_send(f"EXPLAIN {one.explained}")]
    if version >= _GENERIC_OPTION_SINCE:
        return [_send(f"EXPLAIN (GENERIC_PLAN) {one.explained}")]
    name, nulls = f"pgstrata_{number}", ", ".join(["NULL"] * one.parameters)
    # a statement that cannot be prepared ends its transaction: its own error is the first
    return [
        "SET LOCAL plan_cache_mode = force_generic_plan;",
        _send(f"PREPARE {name} AS {one.explained}"),
        f"EXPLAIN EXECUTE {name}({nulls});" if nulls else f"EXPLAIN EXECUTE {name};",
    ]


def _send(statement: str) -> str:
    """The statement as the value of a quoted text that psql sends on as it is."""
    return f"SELECT {quote_dollars(statement)} \\gexec"


def _answers(asked: Sequence[Asked], with_: PlannedWith, told: Iterable[PartAnswer]) -> Iterator[QueryPlan]:
    """The plans in the order of the statements, without constants: alike but for these, statements get numbers."""
    alike = Counter[str]()
    answers = iter(told)
    for one in asked:
        answer = PartAnswer(error=one.error) if one.error else next(answers, PartAnswer())
        text = hide_constants(answer.output.strip("\n"), _NUMBERS_OF_PLANS)
        error = _say_error(answer) or ("" if text else "no answer")
        statement = hide_constants(one.text)
        alike[statement] += 1
        if alike[statement] > 1:
            statement += f" -- {alike[statement]}"
        yield QueryPlan(statement=statement, planned_with=with_, shape=(), text="" if error else text, error=error)


def _say_error(answer: PartAnswer) -> str:
    """What a server said instead, without values."""
    if not answer.sqlstate:
        return answer.error
    values = _QUOTED if answer.sqlstate.startswith(_DATA) else _CONSTANT
    return hide_constants(values.sub("?", answer.error))
