"""What pgbench wrote, as values: summary, per-statement profile, progress lines, complaints.

Pure: bytes and text in, values out. The summary and the progress lines are read by the names of their fields, never by
position, so that pgbench 9.6 to 18 and their options need no cases; a field whose value cannot be read raises
ParseError with the line. The transaction log has its own file, `transactions`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pgstrata.diagnosis.query_text import hide_constants
from pgstrata.drivers.pgbench.shares import NAME
from pgstrata.drivers.pgbench.slices import COUNTS, parse_counts
from pgstrata.drivers.pgbench.transactions import add_counts, count_late, parse_courses, parse_transactions
from pgstrata.drivers.progress import to_series
from pgstrata.drivers.shares import add_points, add_results, by_share
from pgstrata.errors import ParseError
from pgstrata.model.metrics import Series
from pgstrata.model.packed import unpack
from pgstrata.model.runs import NAME_OF_STATEMENT
from pgstrata.ports.driver import STRETCH, DriverResult, ProgressPoint, StepCounts

OUTPUT: Final = f"{NAME}.out"
ERRORS: Final = f"{NAME}.err"
TRANSACTIONS: Final = "transactions.log.gz"

MILLISECONDS: Final = 1000
"""Milliseconds in a second. Values are divided by it: 0.017 ms stays 1.7e-05 s, which multiplying by 1e-3 breaks."""

_LOG = re.compile(r"transactions\.(?:\d+\.)?log\.gz")
_PROGRESS_LINE: Final = "progress:"
_VERSION = re.compile(r"^pgbench \((?P<version>.*)\)$")
_FIELD = re.compile(r"^(?P<key>[a-z][^:=]*?)(?:: | = )(?P<value>.*)$")
_NUMBER = re.compile(r"^(?P<number>\d+(?:\.\d+)?)")
_MOST_DIGITS: Final = 18
"""Digits of a count, which has 64 bits at most."""
_COUNTS: Final = {"": 0, " and failures": 1, ", failures and retries": 2}
"""Numbers between the latency of a statement and its text, by what the heading says of them."""
_STATEMENTS = re.compile(r"^(?: - )?statement latencies in milliseconds(?P<columns>[^:]*):$")
_SECTION = re.compile(r"^SQL script \d+: (?P<name>.*)$")
_MADE = re.compile(r"^ - (?P<count>\d{1,18}) transactions \(")
_COMPLAINT = re.compile(
    r"^pgbench: (?:error|fatal): |\b(?:FATAL|PANIC): |\bclient \d+ (?:script \d+ )?aborted\b|^Run was aborted"
)
_ABORTED = re.compile(r"\bRun was aborted\b|\bclient \d+ (?:script \d+ )?aborted\b")


class PgbenchParser:
    """Implements `ports.DriverParser`."""

    name = NAME

    def ran(self, evidence: Mapping[str, bytes]) -> bool:
        # the warm-up and the stretch before slices leave such a file, too
        return any(name.endswith(OUTPUT) and content for name, content in evidence.items())

    def parse(self, evidence: Mapping[str, bytes]) -> DriverResult:
        return parse_result(evidence)

    def count_late(self, evidence: Mapping[str, bytes], *, limit: float, lead: float) -> StepCounts:
        return add_counts([count_late(log, limit=limit, lead=lead) for log in _logs(evidence)])

    def messages(self, evidence: Mapping[str, bytes]) -> tuple[str, ...]:
        lines = _complaints(by_share(NAME, evidence)).splitlines()
        return tuple(line for line in lines if not line.startswith(_PROGRESS_LINE))


def parse_result(evidence: Mapping[str, bytes]) -> DriverResult:
    """The evidence of one execution as a result.

    Args:
        evidence: contents by evidence name; what is missing counts as empty, as after a start that failed.

    Raises:
        ParseError: a part has an unknown shape; the message quotes the line.
    """
    if COUNTS in evidence:
        return _parse_sliced(evidence)
    shares = by_share(NAME, evidence)
    summary = _summary(shares)
    complaints = _complaints(shares)
    points = add_points([parse_progress(_text(share, "err")) for share in shares])
    logs = _logs(evidence)
    latencies = parse_transactions(b"".join(logs))
    return replace(
        summary,
        complete=summary.complete and _ABORTED.search(complaints) is None,
        percentiles=latencies.quantiles(),
        samples=latencies.samples,
        series=(*_series(points), *(parse_courses(logs) if points else ())),
        errors=parse_complaints(complaints),
    )


def _parse_sliced(evidence: Mapping[str, bytes]) -> DriverResult:
    """Turns of a persistent client: counts come from its log by slice, the throughput from the unlogged stretch.

    Where there was no such stretch, the throughput is that of the slices, log and all.
    """
    counts = parse_counts(evidence[COUNTS])
    shares = by_share(NAME, evidence)
    summary, stretch = _summary(shares), _summary(by_share(NAME, evidence, STRETCH))
    complaints = _complaints(shares)
    logged = counts.transactions / counts.seconds if counts.seconds > 0 else None
    return replace(
        summary,
        complete=summary.complete and _ABORTED.search(complaints) is None and counts.transactions > 0,
        transactions=counts.transactions,
        tps=stretch.tps or logged,
        latency_mean=counts.mean(),
        latency_stddev=None,
        percentiles=counts.quantiles(),
        samples=counts.samples,
        series=(counts.rounds(),),
        statements=(),
        errors=parse_complaints(complaints),
        outside=counts.outside,
        turns=counts.turns,
    )


def _logs(evidence: Mapping[str, bytes]) -> list[bytes]:
    """The transaction logs of the machines from which the load came, or one that is empty."""
    names = sorted(name for name in evidence if _LOG.fullmatch(name))
    return [unpack(evidence[name], name) for name in names] or [b""]


def _summary(shares: Sequence[Mapping[str, bytes]]) -> DriverResult:
    """The summary of all processes together; incomplete where there is none."""
    return add_results([parse_summary(_text(share, "out")) for share in shares] or [parse_summary("")])


def _complaints(shares: Sequence[Mapping[str, bytes]]) -> str:
    return "".join(_text(share, "err") for share in shares)


def _text(evidence: Mapping[str, bytes], name: str) -> str:
    return evidence.get(name, b"").decode("utf-8", "replace")


def _series(points: Sequence[ProgressPoint]) -> tuple[Series, ...]:
    # pgbench prints 0.000 as latency and lag of a second in which no transaction ended
    return to_series([point if point.tps > 0 else replace(point, latency=None, lag=None) for point in points])


# ----------------------------------------------------------------------------------------------- summary


@dataclass(frozen=True, slots=True, kw_only=True)
class _Field:
    key: str
    value: str
    line: str

    def number(self, per_unit: int = 1) -> float | None:
        """The leading number; None for NaN, which old versions print where nothing was processed."""
        match = _NUMBER.match(self.value)
        if match is not None:
            return float(match["number"]) / per_unit
        if self.value.lower().startswith(("nan", "-nan")):
            return None
        raise ParseError(f"pgbench's summary has no number where one is expected: {self.line!r}", where=OUTPUT)

    def count(self) -> int:
        """The leading whole number."""
        match = _NUMBER.match(self.value)
        if match is None or "." in match["number"] or len(match["number"]) > _MOST_DIGITS:
            raise ParseError(f"pgbench's summary has no count where one is expected: {self.line!r}", where=OUTPUT)
        return int(match["number"])


def parse_summary(text: str) -> DriverResult:
    """The summary on standard output; incomplete, all None and zero, if pgbench did not come to it.

    Raises:
        ParseError: a known field has no readable value, or there is a throughput but no count of transactions.
    """
    lines = text.splitlines()
    fields = _fields(lines)
    tps, transactions = _tps(fields), _count(fields, "number of transactions actually processed")
    if tps is not None and transactions is None:
        line = next(field.line for field in reversed(fields) if field.key == "tps")
        raise ParseError(f"pgbench's summary has a throughput but no count of transactions: {line!r}", where=OUTPUT)
    return DriverResult(
        complete=tps is not None,
        version=_version(lines),
        transactions=transactions or 0,
        tps=tps,
        latency_mean=_milliseconds(fields, "latency average"),
        latency_stddev=_milliseconds(fields, "latency stddev"),
        failed=_count(fields, "number of failed transactions") or 0,
        retried=_count(fields, "number of transactions retried") or 0,
        skipped=_count(fields, "number of transactions skipped") or 0,
        statements=_statements(lines),
        by_script=_by_script(lines),
    )


def _by_script(lines: Sequence[str]) -> Mapping[str, int]:
    """Transactions by the name of the script, which is that of its file; scripts of one name count together."""
    found: dict[str, int] = {}
    name = ""
    for line in lines:
        if (section := _SECTION.match(line)) is not None:
            name = section["name"].rpartition("/")[2].removesuffix(".sql")
        elif name and (made := _MADE.match(line)) is not None:
            found[name] = found.get(name, 0) + int(made["count"])
    return found


def _fields(lines: list[str]) -> tuple[_Field, ...]:
    """Fields of the whole run: those of single scripts are indented, or follow a heading of their own."""
    found = []
    for line in lines:
        if _SECTION.match(line):
            break
        match = _FIELD.match(line)
        if match is not None:
            found.append(_Field(key=match["key"], value=match["value"], line=line))
    return tuple(found)


def _version(lines: list[str]) -> str:
    """Version of pgbench, which it prints first since 14; empty before. The server's version may follow in it."""
    for line in lines:
        match = _VERSION.match(line)
        if match is not None:
            return match["version"].split(", server ")[0]
    return ""


def _count(fields: tuple[_Field, ...], key: str) -> int | None:
    return next((field.count() for field in fields if field.key == key), None)


def _milliseconds(fields: tuple[_Field, ...], key: str) -> float | None:
    return next((field.number(MILLISECONDS) for field in fields if field.key == key), None)


def _tps(fields: tuple[_Field, ...]) -> float | None:
    """Throughput without the connections' establishment: the last of two lines before 14, the only one since."""
    found = [field for field in fields if field.key == "tps"]
    return found[-1].number() if found else None


def _statements(lines: list[str]) -> tuple[tuple[float, str], ...]:
    """Mean latency in seconds and text of each statement, in the order of the scripts (option -r)."""
    found = []
    counts = None
    for line in lines:
        heading = _STATEMENTS.match(line)
        if heading is not None:
            counts = _columns_of_counts(heading["columns"], line)
        elif counts is not None and line.startswith("   "):
            found.append(_statement(line, counts))
        else:
            counts = None
    return tuple(found)


def hide_profile(output: str) -> str:
    """The output without the constants of the statements whose latencies it tells."""
    lines, figures = [], None
    for line in output.split("\n"):
        if heading := _STATEMENTS.match(line):
            # columns that nobody knows are taken for text
            figures = re.compile(rf"\s+[\d.]+(?:\s+\d+){{{_COUNTS.get(heading['columns'], 0)}}}\s")
            lines.append(line)
        elif figures and line.startswith("   "):
            end = found.end() if (found := figures.match(line)) else 0
            lines.append(line[:end] + hide_constants(line[end:], kept=NAME_OF_STATEMENT))
        else:
            figures = None
            lines.append(line)
    return "\n".join(lines)


def _columns_of_counts(text: str, line: str) -> int:
    try:
        return _COUNTS[text]
    except KeyError:
        raise ParseError(f"unknown columns of the statements: {line!r}", where=OUTPUT) from None


def _statement(line: str, counts: int) -> tuple[float, str]:
    words = line.split(maxsplit=1 + counts)
    # A comment or an empty command leaves no text behind its figures; its latency still belongs to the profile.
    try:
        latency = float(words[0]) / MILLISECONDS
        tuple(int(word) for word in words[1 : 1 + counts])
    except (ValueError, IndexError):
        raise ParseError(f"unknown shape of a statement's latency: {line!r}", where=OUTPUT) from None
    return latency, words[1 + counts] if len(words) > 1 + counts else ""


# -------------------------------------------------------------------------------- progress, complaints


def parse_progress(text: str) -> tuple[ProgressPoint, ...]:
    """All progress lines of pgbench's standard error; a last line without its end is left out.

    Raises:
        ParseError: a progress line has an unknown shape.
    """
    lines = text.split("\n")[:-1]
    return tuple(_progress_point(line) for line in lines if line.startswith("progress: "))


_PROGRESS: Final[Mapping[str, re.Pattern[str]]] = {
    "time": re.compile(r"(\d+(?:\.\d+)?) s"),
    "tps": re.compile(r"(\d+(?:\.\d+)?) tps"),
    "latency": re.compile(r"lat (\d+(?:\.\d+)?|-?nan) ms(?: stddev (?:\d+(?:\.\d+)?|-?nan))?", re.IGNORECASE),
    "failed": re.compile(r"(\d{1,18}) failed"),
    "lag": re.compile(r"lag (\d+(?:\.\d+)?|-?nan) ms", re.IGNORECASE),
}


def _progress_point(line: str) -> ProgressPoint:
    found: dict[str, float] = {}
    for part in line.removeprefix("progress: ").split(", "):
        for name, pattern in _PROGRESS.items():
            match = pattern.fullmatch(part)
            if match is not None:
                # Old versions print NaN for a second without transactions, new ones 0.000.
                found[name] = 0.0 if "nan" in match[1].lower() else float(match[1])
    if not {"time", "tps", "latency"} <= found.keys():
        raise ParseError(f"unknown shape of a progress line: {line!r}", where=ERRORS)
    return ProgressPoint(
        time=found["time"],
        tps=found["tps"],
        latency=found["latency"] / MILLISECONDS,
        failed=int(found.get("failed", 0)),
        lag=found["lag"] / MILLISECONDS if "lag" in found else None,
    )


def parse_complaints(text: str) -> tuple[str, ...]:
    """The lines in which pgbench or, through it, the server complained of something that ended a client or the run."""
    return tuple(line for line in text.splitlines() if _COMPLAINT.search(line))
