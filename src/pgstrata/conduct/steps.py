"""Pure: the steps of a search for the highest rate within an objective, from the evidence that each of them left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain

from pgstrata.errors import ParseError
from pgstrata.model.objective import LEAD_SHARE, Objective, Search
from pgstrata.model.reasons import Reason
from pgstrata.ports.driver import CountsLate, DriverParser, DriverResult, StepCounts
from pgstrata.stats.objective import OVERRUN, Crossing, Found, Step, find_crossing

# Seconds by which latency grows in a second from which on a queue has no end.
_ENDLESS = 0.02


def step_part(number: int) -> str:
    """The folder of a step's execution, counted from 1; with a point before its evidence names."""
    return f"step.{number:02d}"


def of_step(evidence: Mapping[str, bytes], number: int) -> Mapping[str, bytes]:
    """The evidence of one step, by the names that its driver gave."""
    prefix = f"{step_part(number)}."
    return {name.removeprefix(prefix): content for name, content in evidence.items() if name.startswith(prefix)}


def measure_step(driver: DriverParser, evidence: Mapping[str, bytes], rate: float, search: Search) -> Step:
    """A step at a fixed rate; `evidence` is its own.

    Raises:
        ParseError: its log cannot be read, or the driver has none.
    """
    if not isinstance(driver, CountsLate):
        raise ParseError(f"the driver {driver.name} does not log the latency of each transaction")
    counts = driver.count_late(evidence, limit=search.objective.limit, lead=LEAD_SHARE * search.seconds)
    return score_step(counts, rate, search.objective)


def score_step(counts: StepCounts, rate: float, objective: Objective) -> Step:
    """The score of what was counted at a rate: 1 is the limit."""
    share = objective.late_share
    if not counts.transactions:
        return Step(rate=rate, score=OVERRUN, weight=1.0, least=0.5)
    score = counts.mean / objective.limit if share is None else counts.late / counts.transactions / share
    if counts.growth > _ENDLESS:
        score = max(score, OVERRUN)
    return Step(rate=rate, score=score, weight=counts.transactions, least=_least(counts, share))


def _least(counts: StepCounts, share: float | None) -> float:
    """Half a late transaction, as a score; a mean is never zero."""
    return 1e-9 if share is None else 0.5 / counts.transactions / share


def find_sustained(driver: DriverParser, evidence: Mapping[str, bytes], search: Search) -> Crossing | None:
    """The highest rate within the objective; None where no step at a fixed rate was made."""
    steps = [
        measure_step(driver, of_step(evidence, number), rate, search)
        for number, rate in enumerate(search.rates, 1)
        if rate > 0
    ]
    return find_crossing(steps) if steps else None


def doubt_crossing(crossing: Crossing, objective: Objective) -> tuple[Reason, ...]:
    """A reason to doubt a run whose limit lies outside of all rates that were tried."""
    match crossing.found:
        case Found.WITHIN:
            return ()
        case Found.KEPT:
            return (Reason(code="objective_kept", names=(objective.text,), value=crossing.rate),)
        case Found.MISSED:
            return (Reason(code="objective_missed", names=(objective.text,), value=crossing.rate),)


def add_steps(results: Sequence[DriverResult]) -> DriverResult:
    """All steps as one result: counts add up, the throughput is that of the first, which had no fixed rate.

    Latencies and seconds of different rates are no run's: there are none.
    """
    first = results[0]
    return replace(
        first,
        complete=all(result.complete for result in results),
        transactions=sum(result.transactions for result in results),
        latency_mean=None,
        latency_stddev=None,
        failed=sum(result.failed for result in results),
        retried=sum(result.retried for result in results),
        skipped=sum(result.skipped for result in results),
        percentiles={},
        samples=sum(result.samples for result in results),
        series=(),
        statements=(),
        by_script={},
        errors=tuple(chain.from_iterable(result.errors for result in results)),
    )


def parse_execution(driver: DriverParser, evidence: Mapping[str, bytes], search: Search | None) -> DriverResult | None:
    """What the driver reported of a run, in one execution or in the steps of a search; None where it left nothing."""
    if search is None:
        return driver.parse(evidence) if driver.ran(evidence) else None
    each = [of_step(evidence, number) for number in range(1, len(search.rates) + 1)]
    found = [driver.parse(one) for one in each if driver.ran(one)]
    return add_steps(found) if found else None
