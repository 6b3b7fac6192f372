"""Order entry under pgbench against the same under sysbench, in turns on one server: throughput, and CPU of the client.

    ONLY=drivers make bench
    KEEP=FOLDER PART=4 ONLY=drivers make bench

Statements come from the client in both. BLOCKS (8 unless given) of one run of each, in random order, after one that
does not count. With KEEP, blocks are kept in that folder and not measured again; PART is the most that one call
measures.
"""

from __future__ import annotations

import json
import math
import os
import random
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from figures import Figure

from pgstrata.app.machine import Machine, open_machine
from pgstrata.app.targets import make_recipe
from pgstrata.datasets.cluster import ClusterDatasets
from pgstrata.drivers.registry import find_driver
from pgstrata.layers.server import ClusterControl
from pgstrata.model.experiment import Cell, Environment, ServerKind, ServerSpec
from pgstrata.ports.driver import Driver, Load
from pgstrata.ports.server import RunningServer
from pgstrata.servers.psql import PsqlSql
from pgstrata.stats.rule import Rule, decide_once
from pgstrata.workloads import builtin_workloads

DRIVERS: Final = ("pgbench", "sysbench")
WAREHOUSES: Final = 2
CLIENTS: Final = 4
SECONDS: Final = 10.0
SEED: Final = 17
ENVIRONMENT: Final = Environment(
    name="bench", levels=(), server=ServerSpec(kind=ServerKind.EMBEDDED),
    # neither the disk nor autovacuum decides
    settings={"shared_buffers": "512MB", "max_wal_size": "4GB", "checkpoint_timeout": "1h", "synchronous_commit": "off",
              "autovacuum": "off", "timezone": "GMT", "log_timezone": "GMT"},
)  # fmt: skip
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_REAPED: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One run: transactions per second, new orders per minute, CPU seconds per transaction of client and backends."""

    tps: float
    new_orders: float
    client: float
    server: float

    @property
    def share(self) -> float:
        """The client's share of the CPU time of both."""
        return self.client / (self.client + self.server)


def measure_drivers() -> Iterator[Figure]:
    """The ratio of the throughputs with its interval, and pgbench's share of the CPU, that of sysbench beside it."""
    blocks = int(os.environ.get("BLOCKS") or 8)
    with tempfile.TemporaryDirectory() as temporary:
        file = Path(os.environ.get("KEEP") or temporary) / "drivers.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        known = _load(file)
        most = min(blocks - len(known), int(os.environ.get("PART") or blocks))
        if most > 0:
            for block in _measure_blocks(len(known), most):
                known.append(block)
                with file.open("a") as kept:
                    kept.write(json.dumps({name: asdict(run) for name, run in block.items()}) + "\n")
    if len(known) < blocks:
        print(f"    {len(known)} of {blocks} blocks: the same command goes on")
        return
    yield from _figures(known)


def _load(file: Path) -> list[dict[str, Measured]]:
    lines = file.read_text().splitlines() if file.exists() else []
    return [{name: Measured(**run) for name, run in json.loads(line).items()} for line in lines]


def _figures(blocks: Sequence[dict[str, Measured]]) -> Iterator[Figure]:
    runs = {name: [block[name] for block in blocks] for name in DRIVERS}
    ours, theirs = (runs[name] for name in DRIVERS)
    differences = [math.log(mine.tps / other.tps) for mine, other in zip(ours, theirs, strict=True)]
    (decision,) = decide_once([differences], [Rule(delta=math.log(1.03))])
    assert decision.estimate is not None
    interval = decision.estimate.interval
    span = "" if interval is None else f" [{math.exp(interval.low):.3f}, {math.exp(interval.high):.3f}]"
    ratio = math.exp(decision.estimate.centre)
    notes = [
        f"{ratio:.3f}{span}, {len(blocks)} blocks; {WAREHOUSES} warehouses, {CLIENTS} clients, {SECONDS:.0f} s each"
    ]
    notes += [_say(name, runs[name]) for name in DRIVERS]
    yield Figure(name="drivers: order entry, pgbench / sysbench", value=ratio, goal=0.8, low_is_good=False, notes=notes)
    for name in DRIVERS:
        share = statistics.median(run.share for run in runs[name])
        yield Figure(name=f"drivers: share of CPU of {name}", value=share, goal=0.5)


def _say(name: str, runs: Sequence[Measured]) -> str:
    tps, orders, client, server = (
        statistics.median(getattr(run, field) for run in runs) for field in ("tps", "new_orders", "client", "server")
    )
    return (
        f"{name}: {tps:,.0f} tps, {orders:,.0f} new orders per minute; CPU per transaction {1e6 * client:,.0f} us of "
        f"the client, {1e6 * server:,.0f} us of its backends (medians)"
    )


def _measure_blocks(first: int, number: int) -> Iterator[dict[str, Measured]]:
    drawn = random.Random(SEED + first)
    with open_machine(print) as machine:
        build = machine.servers.resolve(ENVIRONMENT.server)
        control = ClusterControl(machine.host, machine.clock, machine.places.run)
        datasets = ClusterDatasets(
            host=machine.host, sql=PsqlSql(machine.host, build), control=control, tools=build,
            workloads=builtin_workloads(), recipe=make_recipe(), clock=machine.clock, root=machine.places.data,
            study="bench",
        )  # fmt: skip
        drivers = {name: find_driver(name).make(machine.host, build) for name in DRIVERS}
        clone = datasets.clone(datasets.ensure(ENVIRONMENT, build, _cell("pgbench")), "bench-drivers")
        server = control.start(ENVIRONMENT, build, clone)
        try:
            for block in range(number + 1):
                order = drawn.sample(DRIVERS, len(DRIVERS))
                seed = 1000 * (first + block)
                found = {name: _measure(machine, drivers[name], name, server, seed) for name in order}
                if block:
                    yield found
        finally:
            control.stop(server)
            datasets.discard(clone)


def _cell(driver: str) -> Cell:
    return Cell(workload="tpcc", scale=WAREHOUSES, clients=CLIENTS, threads=CLIENTS, driver=driver)


def _measure(machine: Machine, driver: Driver, name: str, server: RunningServer, seed: int) -> Measured:
    folder = f"{machine.places.memory}/bench-drivers"
    machine.host.make_folder(folder)
    try:
        load = Load(
            cell=_cell(name), workload=builtin_workloads()["tpcc"], address=server.address, seconds=SECONDS,
            seed=seed + DRIVERS.index(name) + 1,
        )  # fmt: skip
        before = _backends_cpu(machine, server)
        ended = driver.start(load, folder).wait(timeout=10 * SECONDS)
        result = driver.parse(driver.collect(folder))
    finally:
        machine.host.remove_tree(folder)
    assert result.complete, result.errors
    assert result.tps is not None
    time.sleep(_REAPED)
    made, orders = result.transactions, result.by_script["new-order"]
    return Measured(
        tps=result.tps,
        new_orders=60 * result.tps * orders / sum(result.by_script.values()),
        client=ended.cpu.total / made,
        server=(_backends_cpu(machine, server) - before) / made,
    )


def _backends_cpu(machine: Machine, server: RunningServer) -> float:
    """CPU seconds of all processes of the server that have ended (cutime and cstime of proc_pid_stat(5))."""
    fields = machine.host.read(f"/proc/{server.postmaster_pid}/stat").rpartition(b")")[2].split()
    return sum(map(int, fields[13:15])) / _TICKS
