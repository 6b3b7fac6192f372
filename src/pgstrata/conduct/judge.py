"""Pure: whether a run may enter the estimate, with reasons. What each code is against stands in `model.guards`.

The limits were chosen so that honest runs on two shared CPUs pass; `docs/reference/guards.md` has their reasons.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pgstrata.model.experiment import Allow
from pgstrata.model.guards import MUCH_BACKGROUND_LOAD, Force, force_of, is_much_foreign, is_much_stolen
from pgstrata.model.metrics import BACKGROUND_LOAD, SCHEDULE_LAG
from pgstrata.model.reasons import Reason
from pgstrata.model.runs import RunStatus, Validity
from pgstrata.ports.driver import DriverResult
from pgstrata.ports.store import RunHeader

THREADS: Final = "client.threads"
"""Fact of a run: threads of the client."""
CEILING: Final = "client.ceiling"
"""Fact of a run: transactions per second that `select 1` reached with the same clients, see `conduct.ceiling`."""
CPUS: Final = "host.cpus"
CLIENT_CPUS: Final = "client.cpus"
"""Only where the client is on another machine than the server."""
EMULATION: Final = "host.emulation"
CLIENT_EMULATION: Final = "client.emulation"
_FURTHER_EMULATION: Final = re.compile(r"client\.\d+\.host\.emulation")
LAGGING: Final = "rate_not_kept"
MISSED: Final = "objective_missed"
DROPPING: Final = frozenset({LAGGING, "skipped"})
"""Reasons with which latencies are those of a queue, or of the luckier transactions, and not kept."""

# A step of the wall clock against the monotonic one that no slewing explains (adjtime slews at most 0.5 ms per second).
_CLOCK_JUMP: Final = 0.5
_SWAPPED_PAGES: Final = 256
_BUSY_CLIENT: Final = 0.90
_NEAR_CEILING: Final = 0.85
_SKIPPED: Final = 0.01
# Seconds of lag per second of time: the server is this much slower than the rate.
_LAG_GROWTH: Final = 0.01
_FEWEST_LAGS: Final = 6
# What a server or client says when an environment runs out of a resource at a load.
_EXHAUSTED: Final = (
    "too many clients already",
    "remaining connection slots are reserved",
    "out of memory",
    "out of shared memory",
    "could not fork new process",
    "Cannot allocate memory",
    "could not resize shared memory segment",
    "too many connections for",
)


def exhausted(texts: Sequence[str]) -> str | None:
    """The first line that says that connections or memory ran out, or None."""
    for text in texts:
        for line in text.splitlines():
            if any(sign in line for sign in _EXHAUSTED):
                return line.strip()
    return None


def judge_run(
    header: RunHeader, result: DriverResult | None, measured: Mapping[str, float], allow: Allow
) -> tuple[RunStatus, Validity, tuple[Reason, ...]]:
    """Status, validity and reasons of one run, the hardest reason first.

    Args:
        header: what is known of the run besides the driver's output; its remarks are reasons too.
        result: what the driver reported; None if there is nothing to parse.
        measured: the run's measurements by metric, as far as there are any.
        allow: what the author of the experiment knowingly allows.
    """
    if (failed := _judge_failed(header, result)) is not None:
        return failed
    assert result is not None
    assert result.tps is not None
    case = _Case(header=header, result=result, tps=result.tps, measured=measured, allow=allow)
    found = [reason for check in _CHECKS if (reason := check(case)) is not None]
    reasons = sorted((*found, *header.remarks), key=lambda reason: force_of(reason.code) is not Force.INVALID)
    against = [reason.code for reason in reasons if force_of(reason.code) is Force.INVALID]
    # a server beside background load, or on another machine than before, is not known to be at its end
    alone = measured.get(BACKGROUND_LOAD, 0.0) <= MUCH_BACKGROUND_LOAD
    beyond = against in ([LAGGING], [MISSED])
    status = RunStatus.COLLAPSED if beyond and alone else RunStatus.COMPLETED
    return status, _validity(reasons), tuple(reasons)


def judge_declared(header: RunHeader, result: DriverResult | None) -> tuple[RunStatus, Validity, tuple[Reason, ...]]:
    """Status, validity and reasons of a run whose value is declared: it has to be complete, its speed means nothing.

    So an emulated machine is no reason against it. Each such run says that its value is declared.
    """
    if (failed := _judge_failed(header, result)) is not None:
        return failed
    reasons = (*header.remarks, Reason(code="synthetic"))
    return RunStatus.COMPLETED, _validity(reasons), reasons


def _judge_failed(
    header: RunHeader, result: DriverResult | None
) -> tuple[RunStatus, Validity, tuple[Reason, ...]] | None:
    """None of a run that came to its end."""
    if header.failure_kind == RunStatus.COLLAPSED:
        return RunStatus.COLLAPSED, Validity.INVALID, (_failure(header, Reason(code="collapsed")),)
    if header.failure or result is None or not result.complete or result.tps is None:
        failed = _failure(header, Reason(code="failed", how="no summary"))
        return RunStatus.FAILED, Validity.INVALID, (failed, *header.remarks)
    return None


def _failure(header: RunHeader, otherwise: Reason) -> Reason:
    """Why it failed, of which former versions kept a sentence."""
    if header.failure is None:
        return otherwise
    return replace(header.failure, code=otherwise.code, said=header.failure.said or header.failure.text, text="")


def _validity(reasons: Sequence[Reason]) -> Validity:
    forces = {force_of(reason.code) for reason in reasons}
    if Force.INVALID in forces:
        return Validity.INVALID
    return Validity.SUSPECT if Force.SUSPECT in forces else Validity.VALID


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """All that the checks may look at."""

    header: RunHeader
    result: DriverResult
    tps: float
    measured: Mapping[str, float]
    allow: Allow

    def number(self, fact: str) -> float | None:
        """A fact of the run as a number above zero; None where it is unknown."""
        try:
            value = float(self.header.facts.get(fact, ""))
        except ValueError:
            return None
        return value if 0 < value < math.inf else None


# ------------------------------------------------------------------------------------------ transactions


def _failed_transactions(case: _Case) -> Reason | None:
    result = case.result
    if not result.failed or case.allow.failed_transactions:
        return None
    return Reason(code="failed_transactions", value=result.failed, of=result.failed + result.transactions)


def _no_transactions(case: _Case) -> Reason | None:
    if case.result.transactions:
        return None
    return Reason(code="no_transactions")


def _retried(case: _Case) -> Reason | None:
    if not case.result.retried:
        return None
    return Reason(code="retried", value=case.result.retried)


def _skipped(case: _Case) -> Reason | None:
    skipped, made = case.result.skipped, case.result.transactions
    if skipped <= _SKIPPED * (skipped + made):
        return None
    return Reason(code="skipped", value=skipped, of=skipped + made)


def _rate_not_kept(case: _Case) -> Reason | None:
    growth = lag_growth(case.result)
    if growth is None or growth <= _LAG_GROWTH:
        return None
    return Reason(code=LAGGING, value=growth * 1e3)


def lag_growth(result: DriverResult) -> float | None:
    """Seconds by which the lag behind a fixed rate grows in a second; None without a rate, or in a very short run.

    From the median lag of the first third of the run to that of the last: a single stall, however long, that is made
    up for moves neither. Where a server can do the share s of the rate, lag grows by 1 - s (a queue that is never
    empty: arrivals minus departures).
    """
    lag = next((series for series in result.series if series.metric == SCHEDULE_LAG), None)
    if lag is None or len(lag.values) < _FEWEST_LAGS:
        return None
    third = len(lag.values) // 3
    rise = statistics.median(lag.values[-third:]) - statistics.median(lag.values[:third])
    time = statistics.median(lag.times[-third:]) - statistics.median(lag.times[:third])
    return rise / time if time > 0 else None


# ------------------------------------------------------------------------------------------------ client


def _client_saturated(case: _Case) -> Reason | None:
    """Threads cannot use more CPUs than there are; of several machines of the client the busiest is looked at."""
    used, threads = case.measured.get("client_cpu"), case.number(THREADS)
    cpus = case.number(CLIENT_CPUS) or case.number(CPUS)
    if used is None or threads is None:
        return None
    further, seconds = case.header.further_clients, case.header.seconds or 1.0
    machines = [(used - sum(each.cpu for each in further) / seconds, min(threads, cpus or threads))]
    machines += [
        (each.cpu / seconds, float(min(each.threads, each.cpus or each.threads))) for each in further if each.threads
    ]
    busy, usable = max(machines, key=lambda machine: machine[0] / machine[1])
    if busy <= _BUSY_CLIENT * usable:
        return None
    return Reason(code="client_saturated", value=busy, of=usable)


def _near_ceiling(case: _Case) -> Reason | None:
    ceiling = case.number(CEILING) if case.header.stretched else None
    if ceiling is None or case.tps <= _NEAR_CEILING * ceiling:
        return None
    return Reason(code="above_ceiling" if case.tps > ceiling else "near_ceiling", value=case.tps, of=ceiling)


# -------------------------------------------------------------------------------------------------- host


def _emulated(case: _Case) -> Reason | None:
    facts = case.header.facts
    clients = [name for name in facts if _FURTHER_EMULATION.fullmatch(name)]
    for fact, machine in ((EMULATION, ""), (CLIENT_EMULATION, "client"), *((name, "client") for name in clients)):
        if emulator := facts.get(fact):
            return Reason(code="emulated", said=emulator, how=machine)
    return None


def _foreign_cpu(case: _Case) -> Reason | None:
    for metric, fact, machine in (("foreign_cpu", CPUS, ""), ("client_foreign_cpu", CLIENT_CPUS, "client")):
        used, cpus = case.measured.get(metric), case.number(fact) or 0.0
        if used is not None and is_much_foreign(used, cpus):
            return Reason(code="foreign_cpu", value=used, how=machine)
    return None


def _steal(case: _Case) -> Reason | None:
    for metric, fact, machine in (("steal_cpu", CPUS, ""), ("client_steal_cpu", CLIENT_CPUS, "client")):
        stolen, cpus = case.measured.get(metric), case.number(fact) or 1.0
        if stolen is not None and is_much_stolen(stolen, cpus):
            return Reason(code="steal", value=stolen, of=cpus, how=machine)
    return None


def _swapped_in(case: _Case) -> Reason | None:
    pages = case.measured.get("pages_swapped_in", 0.0)
    if pages <= _SWAPPED_PAGES:
        return None
    return Reason(code="swapped_in", value=pages)


def _clock_jump(case: _Case) -> Reason | None:
    drift = case.header.wall_drift
    if abs(drift) <= _CLOCK_JUMP:
        return None
    return Reason(code="clock_jump", seconds=drift)


_CHECKS: Final[tuple[Callable[[_Case], Reason | None], ...]] = (
    _emulated,
    _failed_transactions,
    _no_transactions,
    _client_saturated,
    _rate_not_kept,
    _skipped,
    _near_ceiling,
    _foreign_cpu,
    _steal,
    _swapped_in,
    _clock_jump,
    _retried,
)
