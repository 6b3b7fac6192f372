"""Pure: the record of a run from its evidence; the same for a fresh run and for `reparse`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Final

from pgstrata.conduct.judge import DROPPING, judge_declared, judge_run
from pgstrata.conduct.steps import doubt_crossing, find_sustained, parse_execution
from pgstrata.conduct.synthetic import declared_values
from pgstrata.conduct.troughs import checkpoint_trough
from pgstrata.errors import ParseError
from pgstrata.model.experiment import Allow
from pgstrata.model.metrics import LATENCY_QUANTILES, SCHEDULE_LAG, SUSTAINED_RATE, Measurement
from pgstrata.model.packed import unpack
from pgstrata.model.queries import QueryCounts
from pgstrata.model.query_plans import QueryPlan
from pgstrata.model.reasons import Reason
from pgstrata.model.runs import RunRecord, RunStatus, StatementLatency, Validity
from pgstrata.model.synthetic import Synthetic
from pgstrata.ports.clients import STARTS, parse_delays
from pgstrata.ports.collector import (
    PLANS,
    Collector,
    CountsQueries,
    DoubtsCaptures,
    Explainer,
    Sampled,
    Sampler,
    SeesClients,
    Window,
)
from pgstrata.ports.driver import DriverParser, DriverResult
from pgstrata.ports.store import RunHeader
from pgstrata.stats.objective import Crossing, Found

MOST_APART: Final = 0.01
"""Share of a run by which the machines of its load may begin apart."""
_QUANTILES = {quantile: name for name, quantile in LATENCY_QUANTILES.items()}


def derive_record(
    header: RunHeader,
    evidence: Mapping[str, bytes],
    driver: DriverParser,
    collectors: Sequence[Collector],
    allow: Allow,
    samplers: Sequence[Sampler] = (),
    explainer: Explainer | None = None,
    synthetic: Synthetic | None = None,
) -> RunRecord:
    """Everything that is known of a run, from what was kept of it.

    With `synthetic` that is the declared value alone: whatever was measured has no part in the record.

    Evidence of an unknown shape makes an invalid run that says so: the evidence is kept, and a later version of the
    parser can make a valid run of it (`reparse`).
    """
    try:
        result = parse_execution(driver, evidence, header.search)
        crossing = find_sustained(driver, evidence, header.search) if header.search and not header.failure else None
        # one that failed before its time was known may have left output all the same
        window = _window(header, driver.name, result, evidence, collectors) if result and header.seconds > 0 else None
        sampled = _sampled(evidence, window, samplers)
        reported, collected = _driver_measurements(header, result), _collected(evidence, window, collectors)
        troughs = _troughs(result, sampled)
        measurements = (*reported, *_sustained(crossing), *collected, *sampled.measurements, *troughs)
        doubts = (
            *_doubts(evidence, window, collectors),
            *_unbounded(header, crossing),
            *begun_apart(header, evidence),
        )
    except ParseError as error:
        unreadable = Reason(code="unreadable", said=str(error))
        return _record(header, (RunStatus.FAILED, Validity.INVALID, (unreadable, *header.remarks)), (), None, Sampled())
    if synthetic is not None:
        return _record(header, judge_declared(header, result), declared_values(synthetic, header), None, Sampled())
    plans, unread = _plans(evidence, explainer)
    header = replace(header, remarks=(*header.remarks, *doubts, *sampled.remarks, *unread))
    judged = judge_run(header, result, {found.metric: found.value for found in measurements}, allow)
    if any(reason.code in DROPPING for reason in judged[2]):
        measurements = tuple(found for found in measurements if not found.metric.startswith("latency_"))
    return replace(
        _record(header, judged, measurements, result, sampled),
        query_plans=plans,
        queries=_queries(evidence, window, collectors),
    )


def _sustained(crossing: Crossing | None) -> tuple[Measurement, ...]:
    """The highest rate within the objective; none where it is missed at every rate."""
    if crossing is None or crossing.found is Found.MISSED:
        return ()
    return (Measurement(metric=SUSTAINED_RATE.name, value=crossing.rate),)


def _unbounded(header: RunHeader, crossing: Crossing | None) -> tuple[Reason, ...]:
    if crossing is None or header.search is None:
        return ()
    return doubt_crossing(crossing, header.search.objective)


def begun_apart(header: RunHeader, evidence: Mapping[str, bytes]) -> tuple[Reason, ...]:
    """Machines of one load that did not begin together."""
    delays = [
        parse_delays(content)
        for name, content in evidence.items()
        if name == STARTS or (name.endswith(f".{STARTS}") and header.search is not None)
    ]
    apart = max((max(each) - min(each) for each in delays if each), default=0.0)
    seconds = header.search.seconds if header.search else header.seconds
    return (Reason(code="began_apart", seconds=apart),) if apart > MOST_APART * seconds else ()


def _record(
    header: RunHeader,
    judged: tuple[RunStatus, Validity, tuple[Reason, ...]],
    measurements: tuple[Measurement, ...],
    result: DriverResult | None,
    sampled: Sampled,
) -> RunRecord:
    status, validity, reasons = judged
    return RunRecord(
        identity=header.identity,
        block=header.block,
        environment=header.environment,
        cell=header.cell,
        status=status,
        validity=validity,
        reasons=reasons,
        started=header.started,
        measured_seconds=header.seconds,
        measurements=measurements,
        series=(*(result.series if result else ()), *sampled.series),
        dead_time=header.dead_time,
        statements=_statements(result),
        together=header.together,
        sessions=sampled.sessions,
        processes=sampled.processes,
        waits=sampled.waits,
    )


def _statements(result: DriverResult | None) -> tuple[StatementLatency, ...]:
    found = result.statements if result else ()
    return tuple(StatementLatency(text=text, seconds=seconds) for seconds, text in found)


def _driver_measurements(header: RunHeader, result: DriverResult | None) -> tuple[Measurement, ...]:
    if result is None:
        return ()
    if not header.stretched:
        # that of its slices, with a log and paired, is another figure than that of the visits with a stretch
        result = replace(result, tps=None)
    named = {
        "tps": result.tps,
        "transactions": float(result.transactions),
        "new_orders": _new_orders(result),
        "power": _power(_statements(result)),
        "latency_mean": result.latency_mean,
        "latency_stddev": result.latency_stddev,
        "failed": float(result.failed),
        "retried": float(result.retried),
        "skipped": float(result.skipped),
        SCHEDULE_LAG: _mean_lag(result),
        **{_QUANTILES[quantile]: value for quantile, value in result.percentiles.items() if quantile in _QUANTILES},
    }
    return tuple(Measurement(metric=name, value=value) for name, value in named.items() if value is not None)


def _mean_lag(result: DriverResult) -> float | None:
    """Seconds by which a transaction began late, on average over the transactions; None without a fixed rate."""
    by_metric = {series.metric: dict(zip(series.times, series.values, strict=True)) for series in result.series}
    lags, rates = by_metric.get(SCHEDULE_LAG, {}), by_metric.get("tps", {})
    made = math.fsum(rates.get(time, 0.0) for time in lags)
    return math.fsum(lag * rates.get(time, 0.0) for time, lag in lags.items()) / made if made > 0 else None


def _troughs(result: DriverResult | None, sampled: Sampled) -> tuple[Measurement, ...]:
    share = checkpoint_trough((*(result.series if result else ()), *sampled.series))
    return () if share is None else (Measurement(metric="checkpoint_trough", value=share),)


def _new_orders(result: DriverResult) -> float | None:
    """New orders per minute, as TPC-C counts (clause 5.4); None of any other load."""
    made, total = result.by_script.get("new-order"), sum(result.by_script.values())
    return 60 * result.tps * made / total if made is not None and result.tps is not None and total else None


def _power(statements: Sequence[StatementLatency]) -> float | None:
    """Queries per hour by the geometric mean of the latencies of statements with names; None without any.

    That is the power of TPC-H (clause 5.4.1) without its scale factor and its refresh functions.
    """
    logs = [math.log(each.seconds) for each in statements if each.name and each.seconds > 0]
    return 3600 / math.exp(fmean(logs)) if logs else None


def _window(
    header: RunHeader, driver: str, result: DriverResult, evidence: Mapping[str, bytes], collectors: Sequence[Collector]
) -> Window:
    window = _as_noted(header, driver, result)
    for collector, before, after in _captured(evidence, collectors):
        if isinstance(collector, SeesClients):
            window = collector.see_clients(before, after, window)
    return window


def _captured(
    evidence: Mapping[str, bytes], collectors: Sequence[Collector]
) -> Iterator[tuple[Collector, bytes, bytes]]:
    """Collectors with both of their captures."""
    for collector in collectors:
        before, after = evidence.get(f"{collector.name}.before"), evidence.get(f"{collector.name}.after")
        if before is not None and after is not None:
            yield collector, before, after


def _as_noted(header: RunHeader, driver: str, result: DriverResult) -> Window:
    return Window(
        seconds=header.seconds,
        transactions=result.transactions,
        client_cpu=header.client_cpu,
        postmaster_pid=header.postmaster_pid,
        transport_pids=header.door_pids,
        server_version=header.server_version,
        client_pids=(*(() if header.client_pid is None else (header.client_pid,)), *header.other_client_pids),
        resident_pids=header.resident_pids,
        outside=result.outside,
        apart=header.apart,
        client_transport_pids=header.client_door_pids,
        shared=header.shared,
        turns=result.turns,
        sampler_pids=header.sampler_pids,
        client_sampler_pids=header.client_sampler_pids,
        sampler_backends=header.sampler_backends,
        client_resident_pids=header.client_resident_pids,
        driver=driver,
        further_clients=header.further_clients,
    )


def _collected(
    evidence: Mapping[str, bytes], window: Window | None, collectors: Sequence[Collector]
) -> tuple[Measurement, ...]:
    if window is None:
        return ()
    found: list[Measurement] = []
    for collector, before, after in _captured(evidence, collectors):
        found += collector.parse(before, after, window)
    return tuple(found)


def _doubts(
    evidence: Mapping[str, bytes], window: Window | None, collectors: Sequence[Collector]
) -> tuple[Reason, ...]:
    if window is None:
        return ()
    found: list[Reason] = []
    for collector, before, after in _captured(evidence, collectors):
        if isinstance(collector, DoubtsCaptures) and before and after:
            found += collector.doubt(before, after)
    return tuple(found)


def _sampled(evidence: Mapping[str, bytes], window: Window | None, samplers: Sequence[Sampler]) -> Sampled:
    if window is None:
        return Sampled()
    unpacked, found = dict(evidence), []
    for sampler in samplers:
        name = f"{sampler.name}.samples"
        try:
            if packed := evidence.get(f"{name}.gz"):
                unpacked[name] = unpack(packed, f"{name}.gz")
        except ParseError as error:
            found.append(_lost(sampler, error))
    for sampler in samplers:
        try:
            if f"{sampler.name}.samples" in unpacked:
                found.append(sampler.parse(unpacked, window))
        except ParseError as error:
            found.append(_lost(sampler, error))
    return Sampled(
        measurements=tuple(item for each in found for item in each.measurements),
        series=tuple(item for each in found for item in each.series),
        sessions=tuple(item for each in found for item in each.sessions),
        processes=tuple(item for each in found for item in each.processes),
        waits=next((each.waits for each in found if each.waits is not None), None),
        remarks=tuple(item for each in found for item in each.remarks),
    )


def _lost(sampler: Sampler, error: ParseError) -> Sampled:
    """What nobody can read was not seen; the run itself is none the worse for it."""
    lost = Reason(code="sampler_lost", how="unreadable", names=(sampler.name,), said=str(error))
    return Sampled(remarks=(lost,))


def _queries(
    evidence: Mapping[str, bytes], window: Window | None, collectors: Sequence[Collector]
) -> QueryCounts | None:
    for collector, before, after in _captured(evidence, collectors):
        if window is not None and before and after and isinstance(collector, CountsQueries):
            try:
                return collector.parse_queries(before, after, window)
            except ParseError as error:
                return QueryCounts(queries=(), lost=str(error))
    return None


def _plans(
    evidence: Mapping[str, bytes], explainer: Explainer | None
) -> tuple[tuple[QueryPlan, ...], tuple[Reason, ...]]:
    """Plans, and what is to be said of a run whose plans nobody can read."""
    kept = evidence.get(PLANS)
    if explainer is None or kept is None:
        return (), ()
    try:
        return explainer.parse(kept), ()
    except ParseError as error:
        return (), (Reason(code="sampler_lost", how="plans", said=str(error)),)
