"""Plans that auto_explain writes into a server's log, in its formats text and json: their nodes, no constant. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pgstrata.collectors.live.plans import outline_plan
from pgstrata.collectors.live.statements import is_own
from pgstrata.collectors.plans import parse_shape
from pgstrata.diagnosis.queries import JIT
from pgstrata.diagnosis.query_text import hash_query, normalise
from pgstrata.model.query_plans import LivePlan

HEAD: Final = re.compile(r"duration: [0-9.]{1,20} ms  plan:")
"""The first line of such a message."""
_CSV_HEAD: Final = re.compile(rf'[^\n]{{0,800}}?,LOG,[0-9A-Z]{{5}},"{HEAD.pattern}')
_MOST_LINES: Final = 2000
_LONGEST: Final = 1 << 19
"""Characters of a message, the text of the statement included; what is longer is not read as a whole."""
_MOST_PLANS: Final = 50
"""Plans of one look; a server that logs more is not read as a whole."""
_TEXT: Final = "Query Text: "
_PARAMETERS: Final = "Query Parameters: "
_TOP: Final = re.compile(r"\S.*  \(cost=[^()]*\)(?: \([^()]*\))?")
_ACTUAL: Final = re.compile(r" \((?:actual [^()]*|never executed)\)\s*$")
_ID: Final = re.compile(r"-?[0-9]{1,20}")
_IDENTITY: Final = re.compile(rf"Query Identifier: ({_ID.pattern})")
_DEEPEST: Final = 100
_LONGEST_NODE: Final = 1000
"""Characters of a line that can be of a node; a name has at most 63 bytes, and only conditions are longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedPlan:
    """A plan with which a statement was executed: `statement` is its key, `text` its normalised text."""

    statement: str
    text: str
    plan: LivePlan


@dataclass(slots=True)
class PlanLines:
    """Collects the lines of messages; `plans` are those that are complete, for whoever takes them."""

    plans: list[LoggedPlan] = field(default_factory=list)
    _lines: list[str] | None = None
    _quoted: bool = False
    _length: int = 0

    def take(self) -> tuple[LoggedPlan, ...]:
        """The plans since somebody asked."""
        found, self.plans = tuple(self.plans), []
        return found

    def forget(self) -> None:
        """What comes next does not follow what came before: a message that was begun has no end."""
        self._lines = None

    def add(self, line: str, message: str | None) -> None:
        """A line of the log; `message` is that of a first line, None where it is none of a plain or JSON log."""
        if self._lines is not None and self._goes_on(line, self._lines):
            return
        if message is not None and (match := HEAD.match(message)):
            body = message[match.end() :].lstrip("\n")
            if body:
                self._finish(body.split("\n"))
            else:
                self._begin(quoted=False)
        elif _CSV_HEAD.fullmatch(line):
            self._begin(quoted=True)

    def _begin(self, *, quoted: bool) -> None:
        self._lines, self._quoted, self._length = [], quoted, 0

    def _goes_on(self, line: str, lines: list[str]) -> bool:
        """Whether the line is part of the message; the last one ends it."""
        if not self._quoted:
            if line.startswith("\t"):
                self._keep(line[1:], lines)
                return True
            self._end(lines)
            return False
        # a quote within the field is doubled, its end is single
        text, end, _ = line.replace('""', "\0").partition('"')
        self._keep(text.replace("\0", '"'), lines)
        if end:
            self._end(lines)
        return True

    def _keep(self, text: str, lines: list[str]) -> None:
        self._length += len(text)
        if len(lines) < _MOST_LINES and self._length <= _LONGEST:
            lines.append(text)

    def _end(self, lines: list[str]) -> None:
        self._lines = None
        self._finish(lines)

    def _finish(self, lines: Sequence[str]) -> None:
        if len(self.plans) >= _MOST_PLANS:
            return
        found = read_logged_plan(lines)
        if found is not None and not is_own(found.text):
            self.plans.append(found)


def read_logged_plan(lines: Sequence[str]) -> LoggedPlan | None:
    """The plan of a message behind its first line; None where it has another format, or was cut."""
    if lines and lines[0].startswith("{"):
        return _read_json("\n".join(lines))
    if not lines or not lines[0].startswith(_TEXT):
        return None
    top = next((place for place, line in enumerate(lines) if place and _TOP.fullmatch(line)), 0)
    if not top:
        return None
    end = next((place for place, line in enumerate(lines[:top]) if line.startswith(_PARAMETERS)), top)
    text = "\n".join(lines[:end]).removeprefix(_TEXT)
    body = [_ACTUAL.sub("", line) for line in lines[top:] if len(line) <= _LONGEST_NODE]
    identity = next((match[1] for line in body if (match := _IDENTITY.fullmatch(line))), "")
    return _make(text, identity, parse_shape("\n".join(body)))


def _make(text: str, identity: str, shape: Sequence[str]) -> LoggedPlan | None:
    normalised = normalise(text)
    key = identity if identity not in {"", "0"} else hash_query(normalised)
    return LoggedPlan(statement=key, text=normalised, plan=outline_plan(shape)) if key and shape else None


def _read_json(text: str) -> LoggedPlan | None:
    try:
        said = json.loads(text)
        identity = str(said.get("Query Identifier", ""))
        if identity and not _ID.fullmatch(identity):
            return None
        shape = [*_outline(said["Plan"], 0), *([JIT] if "JIT" in said else [])]
        query = str(said["Query Text"])
        "\n".join((query, *shape)).encode()  # half a character of UTF-16, as \ud800 gives it, cannot be stored
        return _make(query, identity, shape)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
        return None  # it was cut, or somebody logs what looks like it


def _outline(node: Mapping[str, Any], depth: int) -> Iterator[str]:
    """The nodes as the format text has them, as far as it can be told."""
    if depth > _DEEPEST:
        raise RecursionError
    if part := re.match(r"InitPlan|SubPlan|CTE \S+", str(node.get("Subplan Name", ""))):
        yield "  " * depth + part[0]
        depth += 1
    yield "  " * depth + _name(node)
    if workers := node.get("Workers Planned"):
        yield f"{'  ' * (depth + 1)}{int(workers)} workers planned"
    for below in node.get("Plans", ()):
        yield from _outline(below, depth + 1)


_AGGREGATES: Final = {"Sorted": "GroupAggregate", "Hashed": "HashAggregate", "Mixed": "MixedAggregate"}
_JOINS: Final = ("Nested Loop", "Hash Join", "Merge Join")


def _name(node: Mapping[str, Any]) -> str:
    kind = str(node["Node Type"])
    join, strategy = str(node.get("Join Type", "Inner")), str(node.get("Strategy", ""))
    if kind == "ModifyTable":
        kind = str(node.get("Operation", kind))
    elif kind == "Aggregate":
        partial = str(node.get("Partial Mode", "Simple"))
        kind = f"{'' if partial == 'Simple' else f'{partial} '}{_AGGREGATES.get(strategy, kind)}"
    elif kind in _JOINS and join != "Inner":
        kind = f"Nested Loop {join} Join" if kind == "Nested Loop" else f"{kind.removesuffix(' Join')} {join} Join"
    elif kind == "SetOp":
        kind = f"{'Hash' if strategy == 'Hashed' else ''}SetOp {node.get('Command', '')}".rstrip()
    kind = f"Parallel {kind}" if node.get("Parallel Aware") is True else kind
    backward = " Backward" if node.get("Scan Direction") == "Backward" else ""
    index = node.get("Index Name")
    if index and "Relation Name" not in node:
        return f"{kind}{backward} on {index}"
    using = f" using {index}" if index else ""
    return f"{kind}{backward}{using}{_target(node)}"


def _target(node: Mapping[str, Any]) -> str:
    alias = node.get("Alias")
    names = ("Relation Name", "CTE Name", "Function Name", "Table Function Name")
    name = next((node[each] for each in names if each in node), alias)
    return f" on {name}{f' {alias}' if alias not in {None, name} else ''}" if name else ""
