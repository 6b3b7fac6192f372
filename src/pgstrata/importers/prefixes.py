"""Logs of containers, pods and journals, in which each line has a prefix and lines of several programs are mixed. Pure.

`docker compose logs`, `docker service logs`: `pgbench-1  | LINE`; `kubectl logs --prefix`: `[pod/NAME/CONTAINER] LINE`;
`journalctl`, syslog: `TIME HOST PROGRAM[PID]: LINE`; `docker logs -t`, `kubectl logs --timestamps`, files of container
runtimes, and `ts`: `TIME LINE`. With the option for time stamps, the first two have a time as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from pgstrata.errors import UsageError
from pgstrata.importers.results import Contents, ReadingTerms
from pgstrata.sources.moments import parse_moment

Reader = Callable[[str, ReadingTerms], Contents]

_MOST_STREAMS: Final = 1000
_SAMPLED: Final = 32
"""Lines that are looked at to see whether they have prefixes."""
_COLOUR: Final = re.compile(r"\x1b\[[\d;]{0,20}m")

_ISO: Final = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?"
_SYSLOG: Final = r"[A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d:\d\d(?:\.\d{1,6})?"
_EPOCH: Final = r"\d{9,10}\.\d{1,9}"
_END: Final = r"(?: |$)"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """A kind of prefix: the dimension that its names are levels of, empty without names, and its pattern."""

    dimension: str
    pattern: re.Pattern[str]


_KINDS: Final = (
    _Kind(
        dimension="container",
        pattern=re.compile(
            rf"(?:(?P<before>{_ISO}) )?(?P<name>\w[\w.@-]{{0,199}}) +\|{_END}(?:(?P<stamp>{_ISO}){_END})?", re.ASCII
        ),
    ),
    _Kind(
        dimension="pod",
        pattern=re.compile(rf"\[pod/(?P<name>[^\]\s]{{1,300}})\]{_END}(?:(?P<stamp>{_ISO}){_END})?", re.ASCII),
    ),
    _Kind(
        dimension="program",
        pattern=re.compile(
            rf"(?P<stamp>{_ISO}|{_SYSLOG}|{_EPOCH}) [^\s:]{{1,255}} "
            rf"(?P<name>[^\s\[\]:]{{1,100}})(?:\[\d{{1,10}}\])?:{_END}",
            re.ASCII,
        ),
    ),
    _Kind(
        dimension="",
        pattern=re.compile(rf"(?P<stamp>{_ISO}|{_SYSLOG}|{_EPOCH})(?: std(?:out|err) [FP])?{_END}", re.ASCII),
    ),
)
"""If several kinds match equally many lines, the first one of them is meant: `TIME` alone matches a journal, too."""


@dataclass(slots=True, kw_only=True)
class Stream:
    """The lines of one program without their prefixes: numbers in the file, time stamps (may be empty), texts."""

    name: str
    numbers: list[int] = field(default_factory=list)
    stamps: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def add(self, number: int, stamp: str, line: str) -> None:
        """Add a line."""
        self.numbers.append(number)
        self.stamps.append(stamp)
        self.lines.append(line)


@dataclass(frozen=True, slots=True, kw_only=True)
class Streams:
    """The programs of a log, and the dimension that their names are levels of; empty without names."""

    dimension: str
    streams: tuple[Stream, ...]


def read_by_stream(read: Reader) -> Reader:
    """A reader that reads the lines of each program separately, if the lines of a file have prefixes.

    Results have the numbers of their lines in the file. If they do not state when they began, the time stamps of their
    lines do. If several programs have results, the name of the program is a dimension.
    """

    def read_all(text: str, terms: ReadingTerms) -> Contents:
        found = split_streams(text)
        if found is None:
            return read(text, terms)
        read_of = [(each, read("\n".join(each.lines) + "\n", terms)) for each in found.streams]
        told = [(stream, contents) for stream, contents in read_of if not contents.traceless] or read_of[:1]
        several = sum(bool(contents.results) for _, contents in told) > 1
        return _join([_locate(stream, contents, found.dimension if several else "") for stream, contents in told])

    return read_all


def split_streams(text: str) -> Streams | None:
    """The lines of each program of a log; None if most lines have no prefix.

    A line without a prefix belongs to the program of the line before it.

    Raises:
        UsageError: there are too many programs.
    """
    lines = (_COLOUR.sub("", text) if "\x1b[" in text else text).splitlines()
    kind = _find_kind(lines)
    if kind is None:
        return None
    streams: dict[str, Stream] = {}
    name = ""
    for number, line in enumerate(lines, 1):
        stamp, written = "", line
        if found := kind.pattern.match(line):
            parts = found.groupdict()
            name, stamp = parts.get("name") or "", parts.get("before") or parts["stamp"] or ""
            written = line[found.end() :]
        if name not in streams and len(streams) >= _MOST_STREAMS:
            what = f"its lines come from more than {_MOST_STREAMS:,} programs"
            raise UsageError(what, remedy="import the log of one container, pod or unit at a time")
        streams.setdefault(name, Stream(name=name)).add(number, stamp, written)
    return Streams(dimension=kind.dimension, streams=tuple(streams.values()))


def _find_kind(lines: Sequence[str]) -> _Kind | None:
    """The kind of prefix that most of some lines have, if at least half of them have it."""
    filled = [line for line in lines if line.strip()]
    sampled = filled[:: max(1, len(filled) // _SAMPLED)]
    counted = [sum(kind.pattern.match(line) is not None for line in sampled) for kind in _KINDS]
    most = max(counted)
    return _KINDS[counted.index(most)] if most and 2 * most >= len(sampled) else None


def _locate(stream: Stream, contents: Contents, dimension: str) -> Contents:
    """Contents with the numbers of lines in the file, and with times by the stamps of the lines."""
    places = sorted({max(each.line, 1) for each in contents.results} | {max(line, 1) for line, _ in contents.unusable})
    ends = dict(zip(places, [*places[1:], len(stream.lines) + 1], strict=True))
    results = []
    for each in contents.results:
        first = max(each.line, 1)
        started = each.started or _find_start(stream.stamps[first - 1 : ends[first] - 1], each.seconds)
        said = {**each.said, dimension: stream.name} if dimension else each.said
        results.append(replace(each, line=stream.numbers[first - 1], started=started, said=said))
    unusable = tuple((stream.numbers[line - 1] if line else 0, what) for line, what in contents.unusable)
    return replace(contents, results=tuple(results), unusable=unusable)


def _find_start(stamps: Sequence[str], seconds: float) -> datetime | None:
    """The start of a run by the stamps of its lines.

    Programs that do not write to a terminal write most lines only when they end. So it is the first stamp, or the last
    one less the length of the run, whichever is earlier.
    """
    known = [moment for moment in (_first(stamps), _first(stamps[::-1])) if moment is not None]
    if not known:
        return None
    first, last = known[0], known[-1]
    try:
        return min(first, last - timedelta(seconds=seconds))
    except OverflowError:
        return first


def _first(stamps: Sequence[str]) -> datetime | None:
    return next((moment for stamp in stamps if stamp and (moment := parse_moment(stamp)) is not None), None)


def _join(contents: Sequence[Contents]) -> Contents:
    return Contents(
        results=tuple(sorted((each for one in contents for each in one.results), key=lambda each: each.line)),
        unusable=tuple(sorted(each for one in contents for each in one.unusable)),
        compared=contents[0].compared,
        lower=frozenset(name for one in contents for name in one.lower),
        traceless=all(one.traceless for one in contents),
    )
