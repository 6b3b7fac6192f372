"""Parser of sysbench's output: statistics, histogram of latencies, reports of each second, complaints.

Pure: bytes in, values out. Everything stands on its standard output. Figures are read by the names of their fields; a
field whose value cannot be read raises ParseError with the line.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pgstrata.diagnosis.query_text import hide_constants
from pgstrata.drivers.progress import to_series
from pgstrata.drivers.quantiles import grouped_quantiles
from pgstrata.drivers.shares import add_points, add_results, by_share
from pgstrata.drivers.sysbench import NAME
from pgstrata.errors import ParseError
from pgstrata.ports.driver import DriverResult, ProgressPoint

OUTPUT: Final = f"{NAME}.out"
ERRORS: Final = f"{NAME}.err"

MILLISECONDS: Final = 1000
"""Milliseconds in a second."""

_NUMBER: Final = r"\d{1,15}(?:\.\d{1,9})?"
_VERSION = re.compile(rf"^{NAME} (?P<version>\S+)")
_RATE = re.compile(rf"^Target transaction rate: (?P<rate>{_NUMBER})/sec$")
_REPORT = re.compile(rf"^\[ *(?P<time>{_NUMBER})s ?\] (?P<fields>.*)$")
_THROUGHPUT = re.compile(rf"(?:^| )tps: (?P<tps>{_NUMBER})(?:,? |$)")
_TAIL = re.compile(rf" lat \(ms,99%\): (?P<latency>{_NUMBER})(?: |$)")
_QUEUE = re.compile(r"^queue length: (?P<length>\d{1,15})(?:,|$)")
_FIELD = re.compile(r"^ +(?P<key>[a-z][^:|]*): +(?P<value>\S.*)$")
_VALUE = re.compile(rf"^(?P<number>{_NUMBER})(?:s|$| +\()")
_BAR = re.compile(rf"^ *(?P<value>{_NUMBER}) \|\** +(?P<count>\d{{1,15}})$")
_LIKE_BAR = re.compile(r"^ *[\d.]+ \|")
_FIGURES: Final = (_REPORT, _FIELD, _LIKE_BAR)
_COMPLAINT = re.compile(r"^(?:FATAL|ALERT|WARNING): |^\(last message repeated \d+ times\)$")
_FAILED_QUERY = re.compile(r"^(?P<before>FATAL: failed query was: )(?P<query>.*)$", re.MULTILINE)
_FATAL: Final = ("FATAL: ", "ALERT: ")
_EXECUTED: Final = "total time taken by event execution"
"""Sum of latencies in seconds, as versions before 1.0 print it."""
_BY_SCRIPT: Final = "Transactions of a thread: "
_RETRIES: Final = "Retries of a thread: "
_COUNTS: Final = (_BY_SCRIPT, _RETRIES)
_WHOLE = re.compile(r"\d{1,15}", re.ASCII)
_COUNTED = re.compile(r"(?P<name>[a-z][a-z-]*) (?P<count>\d{1,15})")

# sysbench counts latencies from 1e-3 to 1e5 ms in 1024 groups of equal width on a logarithmic scale, and prints the
# middle of each (sb_histogram.c and OPER_LOG_* in sysbench.c), with three decimals.
_HALF_GROUP: Final = math.log(1e5 / 1e-3) / (1024 - 1) / 2
_HALF_DECIMAL: Final = 0.0005


class SysbenchParser:
    """Implements `ports.DriverParser`."""

    name = NAME

    def ran(self, evidence: Mapping[str, bytes]) -> bool:
        # the warm-up leaves such a file, too
        return any(name.endswith(OUTPUT) and content for name, content in evidence.items())

    def parse(self, evidence: Mapping[str, bytes]) -> DriverResult:
        return parse_result(evidence)

    def messages(self, evidence: Mapping[str, bytes]) -> tuple[str, ...]:
        shares = by_share(NAME, evidence)
        said = [message for share in shares for message in _messages(_split(share.get("out", b"")))]
        return (*said, *(line for share in shares for line in filter(None, _split(share.get("err", b"")))))


def parse_result(evidence: Mapping[str, bytes]) -> DriverResult:
    """The evidence of one execution as a result; incomplete where sysbench did not come to its statistics.

    Events that were begun anew after an error that sysbench ignores (a deadlock, a serialization failure, a duplicate
    key) count as retried transactions: their latency holds all attempts. Where a script counts retries by itself, its
    count holds, because ignored errors may be others, too: new orders that are rolled back on purpose. Connections that
    were made anew count as errors, because transactions were lost with them.

    Args:
        evidence: contents by evidence name; what is missing counts as empty, as after a start that failed.

    Raises:
        ParseError: a part has an unknown shape; the message quotes the line.
    """
    shares = [share.get("out", b"") for share in by_share(NAME, evidence)] or [b""]
    each = [_split(share) for share in shares]
    groups = sum((Counter(_histogram(lines)) for lines in each), Counter[float]())
    return replace(
        add_results([_parse_output(lines) for lines in each]),
        percentiles=_percentiles({value: groups[value] for value in sorted(groups)}),
        samples=groups.total(),
        series=to_series(add_points([parse_progress("\n".join(lines)) for lines in each])),
    )


def _parse_output(lines: Sequence[str]) -> DriverResult:
    """The statistics of one process."""
    fields = _fields(lines)
    errors = tuple(line for line in lines if line.startswith(_FATAL)) + tuple(
        field.line.strip() for field in fields.values() if field.key == "reconnects" and field.count()
    )
    transactions = fields.get("transactions")
    finished = "sum" in fields or _EXECUTED in fields
    return DriverResult(
        complete=transactions is not None and finished and not errors,
        version=next((match["version"] for line in lines[:1] if (match := _VERSION.match(line))), ""),
        transactions=transactions.count() if transactions else 0,
        tps=transactions.per_second() if transactions else None,
        # the mean that it prints has two decimals of a millisecond
        latency_mean=_mean(fields),
        retried=_retries(lines, fields.get("ignored errors")),
        by_script=_by_script(lines),
        errors=errors,
    )


def _retries(lines: Iterable[str], ignored: _Field | None) -> int:
    """As each thread of a script that counts them says when it ends; otherwise every ignored error."""
    said = [line for line in lines if line.startswith(_RETRIES)]
    for line in said:
        if not _WHOLE.fullmatch(line.removeprefix(_RETRIES)):
            raise ParseError(f"unknown shape of retries: {line!r}", where=OUTPUT)
    if said:
        return sum(int(line.removeprefix(_RETRIES)) for line in said)
    return ignored.count() if ignored else 0


def _by_script(lines: Iterable[str]) -> Mapping[str, int]:
    """Transactions by kind, as scripts of pgstrata count them: each thread says it in one line when it ends."""
    found: dict[str, int] = {}
    for line in lines:
        if not line.startswith(_BY_SCRIPT):
            continue
        for each in line.removeprefix(_BY_SCRIPT).split(", "):
            counted = _COUNTED.fullmatch(each)
            if counted is None:
                raise ParseError(f"unknown shape of transactions by kind: {line!r}", where=OUTPUT)
            found[counted["name"]] = found.get(counted["name"], 0) + int(counted["count"])
    return found


def parse_progress(text: str) -> tuple[ProgressPoint, ...]:
    """All reports of a second in the output; `text` ends with a whole line.

    At a fixed rate a second line tells how many transactions wait. The one that begins next has waited for as long as
    these took to arrive (Little's law), which is the lag.

    Raises:
        ParseError: a report has an unknown shape.
    """
    return _points(text.splitlines(), rate=None)


def _points(lines: Iterable[str], rate: float | None) -> tuple[ProgressPoint, ...]:
    found: list[ProgressPoint] = []
    for line in lines:
        if asked := _RATE.match(line):
            rate = float(asked["rate"])
        report = _REPORT.match(line)
        if report is None:
            continue
        time = float(report["time"])
        if queue := _QUEUE.match(report["fields"]):
            if found and found[-1].time == time and rate:
                last = found[-1]
                found[-1] = replace(last, lag=int(queue["length"]) / rate)
            continue
        throughput = _THROUGHPUT.search(report["fields"])
        if throughput is None:
            raise ParseError(f"unknown shape of a report: {line!r}", where=OUTPUT)
        tail, tps = _TAIL.search(report["fields"]), float(throughput["tps"])
        # a second in which no transaction ended has 0.00
        p99 = float(tail["latency"]) / MILLISECONDS if tail is not None and tps > 0 else None
        found.append(ProgressPoint(time=time, tps=tps, latency=None, p99=p99))
    return tuple(found)


# --------------------------------------------------------------------------------------------- statistics


@dataclass(frozen=True, slots=True, kw_only=True)
class _Field:
    key: str
    value: str
    line: str

    def number(self) -> float:
        """The leading number."""
        match = _VALUE.match(self.value)
        if match is None:
            raise ParseError(f"sysbench's statistics have no number where one is expected: {self.line!r}", where=OUTPUT)
        return float(match["number"])

    def count(self) -> int:
        """The leading number, which is whole."""
        number = self.number()
        if not number.is_integer() or "." in self.value.split()[0]:
            raise ParseError(f"sysbench's statistics have no count where one is expected: {self.line!r}", where=OUTPUT)
        return int(number)

    def per_second(self) -> float:
        """Rate per second, in parentheses behind a count."""
        match = re.search(rf"\((?P<rate>{_NUMBER}) per sec\.\)$", self.value)
        if match is None:
            raise ParseError(f"sysbench's statistics have no throughput: {self.line!r}", where=OUTPUT)
        return float(match["rate"])


def _fields(lines: Iterable[str]) -> Mapping[str, _Field]:
    """Indented fields by their names, which differ between the sections that are read; the first of each."""
    found: dict[str, _Field] = {}
    for line in lines:
        match = _FIELD.match(line)
        if match is not None:
            found.setdefault(match["key"], _Field(key=match["key"], value=match["value"], line=line))
    return found


def _mean(fields: Mapping[str, _Field]) -> float | None:
    events = fields.get("total number of events")
    if events is None or not events.count():
        return None
    if summed := fields.get("sum"):
        return summed.number() / events.count() / MILLISECONDS
    executed = fields.get(_EXECUTED)
    return executed.number() / events.count() if executed else None


def _histogram(lines: Iterable[str]) -> Mapping[float, int]:
    """Transactions by the middle of their group in milliseconds; groups that print alike are one."""
    found: dict[float, int] = {}
    for line in lines:
        if not _LIKE_BAR.match(line):
            continue
        match = _BAR.match(line)
        if match is None:
            raise ParseError(f"unknown shape of a line of the histogram: {line!r}", where=OUTPUT)
        value = float(match["value"])
        found[value] = found.get(value, 0) + int(match["count"])
    return {value: found[value] for value in sorted(found) if found[value]}


def _percentiles(groups: Mapping[float, int]) -> Mapping[float, float]:
    if not groups:
        return {}
    found = grouped_quantiles([_edges(value) for value in groups], list(groups.values()))
    return {quantile: value / MILLISECONDS for quantile, value in found.items()}


def _edges(middle: float) -> tuple[float, float]:
    """Both ends of a group; of fast ones the rounding of their middle is coarser than the group."""
    below, above = middle * math.exp(-_HALF_GROUP), middle * math.exp(_HALF_GROUP)
    return max(0.0, min(below, middle - _HALF_DECIMAL)), max(above, middle + _HALF_DECIMAL)


# --------------------------------------------------------------------------------------------- complaints


def _messages(lines: Iterable[str]) -> Iterable[str]:
    """Complaints with the lines that belong to them: a message of the server has several, and ends with an empty one.

    Reports and statistics may follow without an empty line.
    """
    within = False
    for line in lines:
        if _COMPLAINT.match(line):
            within = True
        elif not line.strip() or line.startswith(_COUNTS) or any(each.match(line) for each in _FIGURES):
            within = False
        if within:
            yield line


def hide_query(output: str) -> str:
    """The output without the constants of the statements that failed."""
    return _FAILED_QUERY.sub(lambda found: found["before"] + hide_constants(found["query"]), output)


def _split(content: bytes) -> list[str]:
    return content.decode("utf-8", "replace").split("\n")
