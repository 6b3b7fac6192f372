"""Kinds of measurements, and numbers of them: one name, one unit, one direction."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pgstrata.units import Direction, Unit


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A kind of measurement: one name, one unit, one direction, and the words of its verdicts."""

    name: str
    title: str
    unit: Unit
    direction: Direction
    better: str
    worse: str

    @property
    def sign(self) -> float:
        """Turns ln(value / baseline value) so that above zero is better: 1 or -1."""
        return self.direction.sign


def _metric(
    name: str, title: str, unit: Unit, better: str = "", worse: str = "more", direction: Direction = Direction.LOWER
) -> Metric:
    """A metric, by default one of which less is better."""
    better = better or ("fewer" if unit in {Unit.COUNT, Unit.PER_TRANSACTION} else "less")
    return Metric(name=name, title=title, unit=unit, direction=direction, better=better, worse=worse)


TPS: Final = _metric("tps", "throughput", Unit.PER_SECOND, "faster", "slower", Direction.HIGHER)
SUSTAINED_RATE: Final = _metric(
    "sustained_rate", "rate within the limit", Unit.PER_SECOND, "more", "less", Direction.HIGHER
)
"""The highest rate of a run that keeps its cell's objective."""
SYNTHETIC: Final = _metric(
    "synthetic",
    "synthetic value",
    Unit.COUNT,
    "higher (declared)",
    "lower (declared)",
    Direction.HIGHER,
)
"""Declared by a table [synthetic]; its verdicts say so, because they are none on speed."""
ROUND_TPS: Final = "round_tps"
"""The series of throughput by round of slices: `times` are starts of slices in seconds since the first."""
SCHEDULE_LAG: Final = "schedule_lag"
"""How late transactions began, on average: of a run at a fixed rate, and of each of its seconds."""
COMPARED_SERIES: Final = (ROUND_TPS, TPS.name)
"""Series that comparisons of throughput need: rounds of slices, and seconds, by which a warm-up shows."""
BACKGROUND_LOAD: Final = "neighbour_share"
LATENCY_QUANTILES: Final[Mapping[str, float]] = {
    f"latency_p{percent}": percent / 100 for percent in (10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99)
}
"""Percentiles of latency by the name of their metric, from the fast end to the tail."""
SERVER_CPU: Final = _metric("server_cpu_per_tx", "server CPU per transaction", Unit.SECONDS_PER_TRANSACTION)
BACKEND_CPU: Final = _metric(
    "backend_cpu_per_tx", "CPU of the sessions' processes per transaction", Unit.SECONDS_PER_TRANSACTION
)
RUN_QUEUE: Final = _metric(
    "run_queue_per_tx", "wait of the sessions' processes for a CPU per transaction", Unit.SECONDS_PER_TRANSACTION
)
BACKEND_SYSTEM_CPU: Final = "backend_system_cpu_per_tx"
VOLUNTARY: Final = "backend_voluntary_switches_per_tx"
INVOLUNTARY: Final = "backend_involuntary_switches_per_tx"
BACKEND_FAULTS: Final = "backend_page_faults_per_tx"
SAMPLED_CPU: Final = "sampled_cpu_per_tx"
CYCLES: Final = "cycles_per_tx"
INSTRUCTIONS: Final = "instructions_per_tx"
DTLB_MISSES: Final = "dtlb_misses_per_tx"
CLIENT_CPU: Final = _metric("client_cpu_per_tx", "client CPU per transaction", Unit.SECONDS_PER_TRANSACTION)

METRICS: Final[Mapping[str, Metric]] = {
    metric.name: metric
    for metric in (
        TPS,
        SUSTAINED_RATE,
        SYNTHETIC,
        SERVER_CPU,
        CLIENT_CPU,
        BACKEND_CPU,
        RUN_QUEUE,
        _metric(
            BACKEND_SYSTEM_CPU,
            "CPU of the sessions' processes in the kernel per transaction",
            Unit.SECONDS_PER_TRANSACTION,
        ),
        _metric(
            VOLUNTARY, "voluntary context switches of the sessions' processes per transaction", Unit.PER_TRANSACTION
        ),
        _metric(
            INVOLUNTARY, "involuntary context switches of the sessions' processes per transaction", Unit.PER_TRANSACTION
        ),
        _metric(BACKEND_FAULTS, "page faults of the sessions' processes per transaction", Unit.PER_TRANSACTION),
        _metric(
            SAMPLED_CPU,
            "CPU of the server's processes per transaction, by samples of perf",
            Unit.SECONDS_PER_TRANSACTION,
        ),
        _metric(CYCLES, "CPU cycles of the server's processes per transaction", Unit.PER_TRANSACTION),
        _metric(INSTRUCTIONS, "instructions of the server's processes per transaction", Unit.PER_TRANSACTION),
        _metric(DTLB_MISSES, "misses of the data TLB of the server's processes per transaction", Unit.PER_TRANSACTION),
        _metric("latency_mean", "mean latency", Unit.SECONDS, "faster", "slower"),
        *(
            _metric(
                name,
                "median latency" if name == "latency_p50" else f"{name.removeprefix('latency_')} latency",
                Unit.SECONDS,
                "faster",
                "slower",
            )
            for name in LATENCY_QUANTILES
        ),
        _metric("latency_stddev", "latency standard deviation", Unit.SECONDS),
        _metric(SCHEDULE_LAG, "lag behind the rate", Unit.SECONDS),
        _metric("new_orders", "new orders", Unit.PER_MINUTE, "faster", "slower", Direction.HIGHER),
        _metric("power", "queries per hour (geometric mean)", Unit.PER_HOUR, "faster", "slower", Direction.HIGHER),
        _metric("transactions", "transactions", Unit.COUNT, "more", "fewer", Direction.HIGHER),
        _metric("failed", "failed transactions", Unit.COUNT),
        _metric("retried", "retried transactions", Unit.COUNT),
        _metric("skipped", "skipped transactions", Unit.COUNT),
        _metric("client_share", "client's share of the CPU time", Unit.RATIO),
        _metric("server_cpu", "server CPU", Unit.CPUS),
        _metric("client_cpu", "client CPU", Unit.CPUS),
        _metric("foreign_cpu", "foreign CPU", Unit.CPUS),
        _metric("client_foreign_cpu", "foreign CPU on the client's machine", Unit.CPUS),
        _metric("client_steal_cpu", "stolen CPU on the client's machine", Unit.CPUS),
        _metric("observer_cpu", "CPU of pgstrata itself", Unit.CPUS),
        _metric(BACKGROUND_LOAD, "share of the CPUs that other processes used", Unit.RATIO),
        _metric("steal_cpu", "stolen CPU", Unit.CPUS),
        _metric("wal_per_tx", "WAL per transaction", Unit.BYTES_PER_TRANSACTION),
        _metric("wal_records_per_tx", "WAL records per transaction", Unit.PER_TRANSACTION),
        _metric("wal_fpi_per_tx", "full-page images per transaction", Unit.PER_TRANSACTION),
        _metric("blocks_hit_per_tx", "buffer hits per transaction", Unit.PER_TRANSACTION),
        _metric("blocks_read_per_tx", "blocks read per transaction", Unit.PER_TRANSACTION),
        _metric("checkpoints", "checkpoints during the run", Unit.COUNT),
        _metric(
            "checkpoint_trough",
            "throughput in the trough after a checkpoint, as a share of that before",
            Unit.RATIO,
            "higher",
            "lower",
            Direction.HIGHER,
        ),
        _metric("autovacuums", "autovacuum runs during the run", Unit.COUNT),
        _metric("disk_read", "bytes read from disks", Unit.BYTES),
        _metric("disk_written", "bytes written to disks", Unit.BYTES),
        _metric("context_switches_per_tx", "context switches per transaction", Unit.PER_TRANSACTION),
        _metric("page_faults_per_tx", "page faults per transaction", Unit.PER_TRANSACTION),
        _metric("pages_swapped_in", "pages read back from swap", Unit.COUNT),
        _metric("pressure_cpu", "CPU pressure (some)", Unit.RATIO),
        _metric("pressure_io", "I/O pressure (some)", Unit.RATIO),
        _metric("pressure_memory", "memory pressure (some)", Unit.RATIO),
        _metric(ROUND_TPS, "throughput of a slice", Unit.PER_SECOND, "faster", "slower", Direction.HIGHER),
        _metric("canary", "time of a fixed loop beside the run", Unit.SECONDS),
        _metric("database_size", "size of the database after the run", Unit.BYTES),
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One number of a run; unit and direction follow from the metric's name (`METRICS`)."""

    metric: str
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """A measurement over the seconds of a run, for plots and within-run checks: never extra n.

    `times` are seconds since the start of the measured window, `values` are in the metric's base unit. `subject` is
    what of several was looked at, such as the disk of the data; empty where it is one, or all of them together.
    """

    metric: str
    times: tuple[float, ...]
    values: tuple[float, ...]
    subject: str = ""
