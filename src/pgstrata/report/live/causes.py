"""The causes of a slowdown in words: what happened, and the figures that tell it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from pgstrata.diagnosis.live.causes import LEAST_SHARE, WITH_CAUSE
from pgstrata.model.causes import Cause, CauseKind, Evidence, EvidenceCode
from pgstrata.model.courses import COURSES
from pgstrata.model.explanation import Explanation
from pgstrata.report.live.plans import say_when
from pgstrata.report.live.relations import name_holder
from pgstrata.report.live.tables import say_amount, title_of
from pgstrata.report.live.words import name_application, name_blocker, name_statement, render_sessions
from pgstrata.report.sentences.causes import readable
from pgstrata.units import Unit, render_bytes, render_duration, render_rate

_MOST_FURTHER: Final = 2
_MOST_EVIDENCE: Final = 3
_PLURAL: Final = frozenset({"connections", "temporary_bytes"})
_FIXED: Final = {
    CauseKind.WAL_BURST: "much more WAL was written for each transaction",
    CauseKind.SPILL: "sorts and hashes did not fit into work_mem and were written to temporary files",
    CauseKind.CACHE: "blocks had to be read that were in shared buffers before: these are too small, or were emptied",
    CauseKind.MEMORY: "the host was short of memory",
    CauseKind.CONNECTIONS: "many new connections were opened",
    CauseKind.STOLEN_CPU: "the hypervisor took CPU from this machine",
    CauseKind.NEIGHBOUR: "other programs on the host took CPU",
    CauseKind.SLOW_IO: "reads and writes took longer: the disk was slower, limited or busy with something else",
    CauseKind.SLOW_WAL: "flushes of WAL took longer: the disk was slower, limited or busy with something else",
    CauseKind.STANDBY: "commits waited for a standby",
    CauseKind.CPU_LIMIT: "sessions got less CPU although no other program took it: a quota or another limit",
    CauseKind.DEMAND: "more transactions came than the server can serve as fast as before",
    CauseKind.CLIENT: "clients were slow to read results or to send data",
    CauseKind.CPU_EACH: "transactions took more CPU and touched no more blocks",
    CauseKind.CPU: "sessions ran or waited for a CPU longer and touched no more blocks; the host is not seen",
}


def cause_sentences(why: Explanation, texts: Mapping[str, str]) -> Iterator[str]:
    """The most likely cause and up to two further ones, without full stops; nothing where nothing was slow."""
    if why.outcome not in WITH_CAUSE:
        return
    if not why.causes:
        least = f"{LEAST_SHARE * 100:.0f} %"
        yield f"Cannot tell the cause: no cause that pgstrata knows explains {least} or more of the extra load"
        return
    for place, cause in enumerate(why.causes[: 1 + _MOST_FURTHER]):
        yield f"{'Also' if place else 'Most likely'}: {say_cause(cause, texts)}"


def say_cause(cause: Cause, texts: Mapping[str, str]) -> str:
    """What happened, the share of the extra load, and the evidence."""
    said = f"{name_cause(cause, texts)} ({cause.share * 100:.0f} % of the extra load)"
    evidence = [_say_evidence(each, texts) for each in cause.evidence[:_MOST_EVIDENCE]]
    if not evidence:
        return said
    *others, last = evidence
    return f"{said}, because {', '.join(others)}{' and ' if others else ''}{last}"


def name_cause(cause: Cause, texts: Mapping[str, str]) -> str:
    """What happened, without figures: other programs on the host took CPU."""
    match cause.kind:
        case CauseKind.IDLE_IN_TRANSACTION | CauseKind.PREPARED | CauseKind.RELATION_LOCK | CauseKind.LOCK_HELD:
            return _say_lock(cause, texts)
        case CauseKind.OLD_TRANSACTION:
            if cause.horizon is not None:
                return f"{name_holder(cause.horizon)} kept vacuum from removing old row versions"
            who = name_blocker(cause.session, texts)
            return f"{who} kept its transaction open, so that vacuum could not remove old row versions"
        case CauseKind.MORE_BLOCKS:
            which = _name_statements(cause, texts)
            if any(each.code is EvidenceCode.PLAN for each in cause.evidence):
                return f"{which} touched more blocks a call, with another plan"
            return f"{which} touched more blocks a call: plan, parameters or the size of the tables changed"
        case CauseKind.NEW_STATEMENTS:
            return f"{_name_statements(cause, texts)} ran, which had not been there before"
        case CauseKind.MORE_CALLS:
            return f"{_name_statements(cause, texts)} was called more often in each transaction"
        case CauseKind.EVENT:
            where = f", most of all in {name_statement(cause.statements[0], texts)}" if cause.statements else ""
            return f"sessions waited for {readable(cause.event)}{where}"
        case _:
            return _FIXED[cause.kind]


def _say_lock(cause: Cause, texts: Mapping[str, str]) -> str:
    session = cause.session
    lock = "a lock on a table" if cause.kind is CauseKind.RELATION_LOCK else "a lock"
    if cause.kind is CauseKind.LOCK_HELD and session is not None and len(cause.pids) > 1:
        where = f", most of all in {name_statement(cause.statements[0], texts)}" if cause.statements else ""
        who = name_application(session.application)
        return f"transactions of the application {who} queued for locks that others of them held{where}"
    if cause.kind is CauseKind.IDLE_IN_TRANSACTION and session is not None and len(cause.pids) > 1:
        who = name_application(session.application)
        return f"sessions of the application {who} that were idle in their transactions held locks that others needed"
    process = f" (process {cause.pids[0]})" if cause.pids else ""
    return f"{name_blocker(session, texts)}{process} held {lock} that others needed"


def _name_statements(cause: Cause, texts: Mapping[str, str]) -> str:
    first, *others = cause.statements or ("",)
    return f"{name_statement(first, texts)}{' and others' if others else ''}"


def _say_evidence(item: Evidence, texts: Mapping[str, str]) -> str:
    """A clause with both figures."""
    sessions = f"{render_sessions(item.value)} sessions"
    match item.code:
        case EvidenceCode.BEHIND:
            return f"{sessions} waited behind it on average{_instead(item, render_sessions)}"
        case EvidenceCode.WAIT:
            return f"{sessions} waited for {readable(item.name)}{_instead(item, render_sessions)}"
        case EvidenceCode.RUNNING:
            return f"{sessions} were running or ready to run{_instead(item, render_sessions)}"
        case EvidenceCode.LOAD:
            return f"{sessions} were in {name_statement(item.name, texts)}{_instead(item, render_sessions)}"
        case EvidenceCode.OPEN:
            return f"its transaction had been open for up to {render_duration(item.value)}"
        case EvidenceCode.PRESENT:
            return f"it was there for at least {render_duration(item.value)}"
        case EvidenceCode.OTHERS:
            others = max(0.0, item.value), max(0.0, item.reference or 0.0)
            return f"{others[0]:.2f} other tasks were running or ready to run instead of {others[1]:.2f}"
        case EvidenceCode.AGE:
            return f"its snapshot was {item.value:,.0f} transactions old"
        case EvidenceCode.RESTARTED:
            return "the server was restarted"
        case EvidenceCode.PLAN:
            return f"its plan changed {say_when(item.reference, item.value)}" if item.reference else "its plan differs"
        case EvidenceCode.RATE | EvidenceCode.EACH:
            return _say_rate(item)
        case _:
            return _say_work(item, texts)


def _say_work(item: Evidence, texts: Mapping[str, str]) -> str:
    statement = name_statement(item.name, texts) if item.name else "each transaction"
    match item.code:
        case EvidenceCode.BLOCKS:
            return f"{statement} touched {render_rate(item.value)} blocks{_instead(item, render_rate)}"
        case EvidenceCode.READS:
            return f"each transaction read {render_rate(item.value)} blocks{_instead(item, render_rate)}"
        case EvidenceCode.TIME:
            return f"a call took {render_duration(item.value)}{_instead(item, render_duration)}"
        case EvidenceCode.CALLS:
            return f"each transaction called {statement} {render_rate(item.value)} times{_instead(item, render_rate)}"
        case EvidenceCode.WAL_OF:
            return f"{statement} wrote {render_bytes(item.value)} of WAL a second{_instead(item, render_bytes)}"
        case EvidenceCode.GREW:
            late, before = render_rate(item.value), render_rate(item.reference or 0.0)
            return f"a transaction touched {late} blocks late in the window, after {before} before"
        case _:
            raise AssertionError(item.code)


def _say_rate(item: Evidence) -> str:
    verb = "were" if item.name in _PLURAL or COURSES[item.name].unit is Unit.PER_SECOND else "was"
    if item.code is EvidenceCode.EACH:
        amounts = render_bytes(item.value), render_bytes(item.reference or 0.0)
        return f"{title_of(item.name)} {verb} {amounts[0]} per transaction instead of {amounts[1]}"
    value, before = say_amount(item.name, item.value), say_amount(item.name, item.reference or 0.0)
    return f"{title_of(item.name)} {verb} {value} instead of {before}"


def _instead(item: Evidence, render: Callable[[float], str]) -> str:
    return "" if item.reference is None else f" instead of {render(item.reference)}"
