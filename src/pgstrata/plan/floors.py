"""Which floor belongs to a cell of a plan, and what may be made of the measurements that are known of it.

Pure: what is known and what time it is are handed in.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime, timedelta
from typing import Final

from pgstrata.model.answer import ALL_CELLS
from pgstrata.model.driver import DEFAULT_DRIVER
from pgstrata.model.experiment import HERE, Cell, ControlKind, Environment, Experiment, name_hosts
from pgstrata.model.floor import FLOOR_LIFETIME, LEAST_DIFFERENCES, Floor, FloorKey, FloorRecord, digest_facts
from pgstrata.model.plan import Design, Plan
from pgstrata.model.reasons import Reason
from pgstrata.model.server import Fingerprint
from pgstrata.model.workload import Workload
from pgstrata.plan.design import MOVES_WORK, warmup_of, writes

# Follows from the numbers of clients of all cells, and costs nothing while nobody connects.
_INDIFFERENT: Final = frozenset({"max_connections"})
# A clock that was set back a little does no harm.
_AHEAD: Final = timedelta(days=1)
_MOST_CHANGES: Final = 3


def baseline_twice(experiment: Experiment, blocks: int, *, question: str, remark: str) -> Experiment:
    """The baseline and a copy of it as the control `same`, in the same cells; the text of the file below a remark."""
    baseline = experiment.environment(experiment.baseline)
    control = replace(baseline, name=f"{baseline.name}-control", control=ControlKind.SAME)
    return replace(
        experiment,
        question=question,
        environments=(baseline, control),
        blocks=blocks,
        budget=None,
        factors=(),
        text=f"# {remark}\n{experiment.text}",
    )


def floor_key(plan: Plan, cell: str, metric: str, workloads: Mapping[str, Workload]) -> FloorKey:
    """What the floor of a cell belongs to, by the cell's identity; `ALL_CELLS` is the mean over all of them.

    That is the baseline as it was asked for and everything that decides what a run of the cell does. A control and the
    baseline are two environments: a block of more takes longer, and its differences may be a little larger.
    """
    if cell == ALL_CELLS:
        keys = [floor_key(plan, one.identity, metric, workloads) for one in plan.experiment.cells]
        designs = " and ".join(dict.fromkeys(key.design for key in keys))
        parts = sorted(key.digest for key in keys)
        return FloorKey(cell=cell, metric=metric, design=designs, conditions={"cells": " ".join(parts)})
    measured, design = plan.experiment.cell(cell), plan.design(cell)
    baseline = plan.experiment.environment(plan.experiment.baseline)
    conditions = {
        **_conditions_of_cell(measured, design),
        **_conditions_of_environment(baseline, writing=writes(measured, workloads)),
        "reset": str(plan.experiment.reset),
    }
    return FloorKey(cell=cell, metric=metric, design=design.describe(measured.run), conditions=conditions)


def _conditions_of_cell(cell: Cell, design: Design) -> dict[str, str]:
    conditions = {
        "workload": cell.workload,
        **({"scale": str(cell.scale)} if cell.data is None else {"data": cell.data.digest[:12]}),
        "clients": str(cell.clients),
        "threads": str(cell.threads),
        "protocol": str(cell.protocol),
        "warmup": f"{warmup_of(cell, design):g}",
        "rate": "" if cell.rate is None else f"{cell.rate:g}",
        "latency_limit": "" if cell.latency_limit is None else f"{cell.latency_limit:g}",
        "profile": str(cell.profile),
        **({} if cell.rate_share is None else {"rate_share": f"{cell.rate_share:g}"}),
        **({} if cell.objective is None else {"objective": cell.objective.text}),
        "scripts": _digest(f"{script.weight} {script.text}" for script in (*cell.scripts, *cell.checkout)),
        **({} if cell.driver == DEFAULT_DRIVER else {"driver": cell.driver}),
        **{f"cell option {name}": _short(value) for name, value in cell.options.items()},
    }
    for field in fields(Design):
        if field.name not in {"cell", "reason"}:
            conditions[f"design {field.name}"] = str(getattr(design, field.name))
    return conditions


def _conditions_of_environment(environment: Environment, *, writing: bool) -> dict[str, str]:
    # pgstrata chooses some of what moves work for all cells as soon as one of them writes
    settings = {
        name: value
        for name, value in environment.settings.items()
        if name not in _INDIFFERENT and (writing or not MOVES_WORK.fullmatch(name))
    }
    return {
        **({"host": environment.host.text} if environment.host.remote else {}),
        **({} if environment.client_hosts == HERE else {"client": name_hosts(environment.client_hosts)}),
        "server": environment.server.text,
        "connection": str(environment.connection),
        "checksums": str(environment.checksums),
        **{f"setting {name}": value for name, value in settings.items()},
        **{f"initdb {name}": value for name, value in environment.initdb.items()},
        **{f"option {name}": _short(value) for name, value in environment.options.items()},
        **{f"layer {name}": value for name, value in environment.layers.items()},
    }


def _digest(parts: Iterable[str]) -> str:
    text = "\0".join(parts)
    return hashlib.sha256(text.encode()).hexdigest()[:12] if text else ""


def _short(value: str) -> str:
    """Options may be whole files of SQL."""
    return value if len(value) <= 80 and "\n" not in value else _digest([value])  # noqa: PLR2004 - a line


# ------------------------------------------------------------------------------------------------ floors


def make_floor(key: FloorKey, records: Sequence[FloorRecord], host: Fingerprint, now: datetime) -> Floor | None:
    """The floor of a key, from all that was measured of it anywhere; None where nothing was.

    What was measured within its lifetime on the host as it is now is pooled. The floor is the larger one of that and of
    the newest measurements alone, as many as make a floor: a host that has become noisier must not hide behind quieter
    weeks. Where nothing can be relied upon, the newest one comes with its doubt.

    Args:
        key: what the floor is of; `records` are of the same conditions.
        records: in any order.
        host: what the host is like now.
        now: with offset.
    """
    if not records:
        return None
    ordered = sorted(records, key=lambda record: datetime.fromisoformat(record.measured))
    usable = [record for record in ordered if not doubt_record(record, host, now)]
    if not usable:
        # of those from here, if there are any, rather than of another host
        newest = max(ordered, key=lambda record: (record.host == host, datetime.fromisoformat(record.measured)))
        return _floor(key, [newest], doubt_record(newest, host, now))
    return _floor(key, usable, None)


def _floor(key: FloorKey, records: Sequence[FloorRecord], doubt: Reason | None) -> Floor:
    from pgstrata.stats.floor import noise_floor  # noqa: PLC0415 - numpy, for which plans without a floor do not wait

    newest = records[-1]
    pooled = [difference for record in records for difference in record.differences]
    s0 = max(noise_floor(_newest_differences(records)), noise_floor(pooled))
    return Floor(
        s0=s0,
        differences=len(pooled),
        cell=key.cell,
        metric=key.metric,
        design=key.design,
        host=digest_facts(newest.host.facts),
        measured=newest.measured,
        source=f"study {newest.source}",
        pooled=len(records) - 1,
        doubt=doubt or _doubt_figures(s0, pooled),
    )


def _newest_differences(records: Sequence[FloorRecord]) -> list[float]:
    """Differences of the newest records, as few as hold enough for a floor; of all if they hold fewer."""
    found: list[float] = []
    for record in reversed(records):
        if len(found) >= LEAST_DIFFERENCES:
            break
        found += record.differences
    return found


def _doubt_figures(s0: float, pooled: Sequence[float]) -> Reason | None:
    from pgstrata.stats.floor import MAX_OUTLIERS, outlying  # noqa: PLC0415 - as above

    number = len(pooled)
    if number < LEAST_DIFFERENCES:
        how = "single" if number == 1 else ""
        return Reason(code="floor_few", how=how, value=number, of=LEAST_DIFFERENCES)
    if s0 <= 0:
        return Reason(code="floor_zero")
    if (outliers := outlying(pooled, s0)) > MAX_OUTLIERS * number:
        return Reason(code="floor_outliers", value=outliers, of=number)
    return None


def doubt_record(record: FloorRecord, host: Fingerprint, now: datetime) -> Reason | None:
    """Why a record must not be relied upon on the host as it is now; None where it may."""
    measured = datetime.fromisoformat(record.measured)
    day = measured.date().isoformat()
    if record.host != host:
        return _doubt_host(record.host, host)
    if now - measured > FLOOR_LIFETIME:
        return Reason(code="floor_old", said=day, value=FLOOR_LIFETIME.days)
    if measured - now > _AHEAD:
        return Reason(code="floor_ahead", said=day)
    return None


def _doubt_host(before: Fingerprint, now: Fingerprint) -> Reason:
    """The names of what differs: another machine, or kernel and cmdline."""
    names = sorted(
        name for name in before.facts.keys() | now.facts.keys() if before.facts.get(name) != now.facts.get(name)
    )
    if "machine" in names:
        return Reason(code="floor_host", how="other")
    if "client.machine" in names:
        return Reason(code="floor_host", how="client")
    more = max(0, len(names) - _MOST_CHANGES)
    known = tuple(names[:_MOST_CHANGES])
    return Reason(code="floor_host", how="and more" if more else "", names=known, value=more)
