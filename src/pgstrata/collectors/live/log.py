"""New lines of a live server's log: which events they tell, without any text of a statement. Pure.

Lines may have any prefix, or be those of csvlog and jsonlog. Messages are recognised in English only. An event counts
for the second in which its line was read: times in a log are those of log_timezone, which is not known for certain.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Final

from pgstrata.collectors.live.logged_plans import PlanLines
from pgstrata.errors import ParseError
from pgstrata.model.archive import ArchiveEvent, EventKind

MOST: Final = 1 << 20
"""Bytes of new log that are read at once; of a longer piece the end is."""
_LONGEST: Final = 4096
"""Bytes of a line that are looked at."""
_LONGEST_PLAN: Final = 1 << 17
_PLAN: Final = b" ms  plan:"
_DETAIL: Final = 200
_ASKED: Final = "pg_current_logfile()"
_PLACE: Final = 3
_LEVELS: Final = "LOG|ERROR|FATAL|PANIC|WARNING"
# the first word that looks like a level is the level: DETAIL and STATEMENT may quote others
_PLAIN: Final = re.compile(r"[^\n]{0,300}?\b(?P<level>[A-Z]{3,12}):  (?P<text>[^\n]*)")
_CSV: Final = re.compile(rf'[^\n]{{0,800}}?,(?P<level>{_LEVELS}),[0-9A-Z]{{5}},"(?P<text>(?:[^"]|"")*)"')
FAILURES: Final = frozenset({"ERROR", "FATAL", "PANIC"})
"""Levels of messages that say that something failed."""
_SIZE: Final = re.compile(r"temporary file: path .*, size (\d+)")
_MESSAGES: Final[tuple[tuple[EventKind, re.Pattern[str]], ...]] = (
    (EventKind.CHECKPOINT, re.compile(r"(?:checkpoint|restartpoint) starting: (?P<detail>[a-z ]{1,60})")),
    (EventKind.CHECKPOINT_DONE, re.compile(r"(?:checkpoint|restartpoint) complete: (?P<detail>wrote \d+ buffers).*")),
    (
        EventKind.AUTOVACUUM,
        re.compile(r"automatic (?P<detail>(?:aggressive )?(?:vacuum|analyze)\b.{0,40}? of table \"[^\"]{1,200}\")"),
    ),
    (EventKind.LOCK_WAIT, re.compile(r"process \d+ still waiting for (?P<detail>\w{1,40}) on ")),
    (
        EventKind.CRASHED,
        re.compile(r"(?P<detail>.{1,60}) \(PID \d+\) was terminated by (?:signal|exception) [0-9A-Fx]+"),
    ),
)
_FAILED: Final[tuple[tuple[EventKind, re.Pattern[str]], ...]] = (
    (EventKind.DEADLOCK, re.compile("deadlock detected")),
    (EventKind.CANCELED, re.compile(r"cancel(?:l)?ing (?:statement|autovacuum task)(?P<detail> due to [a-z ]{1,60})?")),
    (
        EventKind.REFUSED,
        re.compile(
            r"sorry, too many clients already|(?:remaining )?connection slots are reserved|too many connections"
        ),
    ),
    (EventKind.REFUSED, re.compile("the database system is (?P<detail>[a-z ]{1,40})")),
    (EventKind.ERRORS, re.compile("")),
)


LOG_RIGHT: Final = f"SELECT has_function_privilege('{_ASKED}', 'EXECUTE') AS pgstrata"
"""Asked first: without the right any statement that names the function fails, whether or not it would call it."""


@cache
def log_statement(*, named: bool = True) -> str:
    """What a server is asked about its log, a row; `named`: the role may ask for its path."""
    text = (files(__package__) / "sql" / "log.sql").read_text("utf-8")
    return text if named else text.replace(_ASKED, "NULL")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPlace:
    """What a server says of its log: `path` is absolute, empty where it does not say; `backend` is a process of its."""

    path: str
    backend: int


def read_log_place(rows: bytes) -> LogPlace:
    """The answer to `log_statement`; ParseError where it has an unknown shape."""
    text = rows.decode("utf-8", "replace").rstrip("\n")
    words = text.split("\t")
    if len(words) != _PLACE or not words[2].isdecimal():
        raise ParseError(f"unknown shape of the place of the log: {text[:200]!r}")
    path, data, backend = words
    if path and not path.startswith("/"):
        path = f"{data}/{path}" if data else ""
    return LogPlace(path=path, backend=int(backend))


@dataclass(slots=True)
class LogReader:
    """Keeps the beginning of a line whose end is not there yet; `plans` are those that auto_explain wrote."""

    _rest: bytes = b""
    plans: PlanLines = field(default_factory=PlanLines)

    def forget(self) -> None:
        """What comes next does not follow what came before."""
        self._rest = b""
        self.plans.forget()

    def read(self, new: bytes, moment: int) -> tuple[ArchiveEvent, ...]:
        """Events of what came to the log since the last look, one for each kind, counted.

        Args:
            new: the bytes that came.
            moment: of the look, Unix seconds.
        """
        *lines, rest = (self._rest + new).split(b"\n")
        self._rest = rest[:_LONGEST_PLAN]
        times: Counter[EventKind] = Counter()
        details: dict[EventKind, str] = {}
        size = 0
        for line in lines:
            # a plan in JSON is one line
            longest = _LONGEST_PLAN if _PLAN in line[:_LONGEST] else _LONGEST
            text = line[:longest].decode("utf-8", "replace").rstrip("\r")
            told = _read_line(text)
            self.plans.add(text, told[1] if told and told[0] == "LOG" else None)
            for kind, detail in find_events(*told) if told else ():
                times[kind] += 1
                details.setdefault(kind, detail)
                if kind is EventKind.TEMPORARY:
                    size += int(detail)
        if size:
            details[EventKind.TEMPORARY] = f"{size} bytes"
        return tuple(
            ArchiveEvent(moment=moment, kind=kind, detail=details[kind][:_DETAIL], times=number)
            for kind, number in times.items()
        )


def _read_line(line: str) -> tuple[str, str] | None:
    """Level and message; None where a line is no first line of a message."""
    if line.startswith("{"):
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            # whoever can log an error can write a line that is nested so deep that it cannot be read
            return None
        level, text = (entry.get(key) for key in ("error_severity", "message"))
        return (level, text) if isinstance(level, str) and isinstance(text, str) else None
    # what a message goes on with is indented, or is quoted by STATEMENT
    if not line or line[0] in "\t ":
        return None
    match = _CSV.match(line) or _PLAIN.match(line)
    return (match["level"], match["text"]) if match else None


def find_events(level: str, text: str) -> Iterator[tuple[EventKind, str]]:
    """What a message tells, with a detail; of each failure one kind, the most precise one."""
    if level == "LOG":
        if size := _SIZE.match(text):
            yield EventKind.TEMPORARY, size[1]
        known = _MESSAGES
    elif level in FAILURES:
        known = _FAILED
    else:
        return
    for kind, pattern in known:
        if match := pattern.match(text):
            yield kind, (match.groupdict().get("detail") or "").strip()
            return
