"""The guards: checks against the known ways in which a benchmark misleads, by the code of the reason that they give.

What belongs here: codes, the risk, the condition, what follows from it, and how the guard was tested. The checks are
where a code is emitted (`conduct.judge`, `conduct.observe`, `compare`, `plan.refusals`). A test fails if a code is
emitted that is not listed, or if a listed one is emitted nowhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

MUCH_BACKGROUND_LOAD: Final = 0.25
"""Share of the CPUs used by other processes from which on a figure is judged to be disturbed."""
FAST_CLOCKS: Final = frozenset(
    {"tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter", "timebase", "tod"}
)
"""Clock sources of the kernel that are read without a system call (vDSO): those of processors and of hypervisors."""
_FOREIGN_CPU: Final = 0.25
_FOREIGN_SHARE: Final = 0.02
_STOLEN_SHARE: Final = 0.02


def is_much_foreign(used: float, cpus: float) -> bool:
    """Whether CPUs that others kept busy disturb a measurement on a host that has so many; 0 where that is unknown."""
    return used > max(_FOREIGN_CPU, _FOREIGN_SHARE * cpus)


def is_much_stolen(stolen: float, cpus: float) -> bool:
    """Whether CPUs that the hypervisor gave to other machines disturb a measurement on a host that has so many."""
    return stolen > _STOLEN_SHARE * cpus


class Force(StrEnum):
    """What a guard does."""

    REFUSED = "refused"
    INVALID = "invalid"
    SUSPECT = "suspect"
    WARNING = "warning"


class GuardSubject(StrEnum):
    """What a guard looks at."""

    PLAN = "plan"
    ENVIRONMENT = "environment"
    RUN = "run"
    COMPARISON = "comparison"
    STUDY = "study"
    DATA = "data of another tool"


class Proof(StrEnum):
    """How a guard was shown to work."""

    PROVOKED = "provoked"
    """The fault was caused on real servers, and the guard reported it."""
    CAPTURE = "capture only"
    """Shown on captures, real or shortened, because the fault cannot be caused on every machine."""
    FIGURES = "figures"
    """It judges figures of runs, or the plan, and was tested on these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """One guard. `risk`: how results would mislead without it. `condition`: when it is given."""

    code: str
    force: Force
    subject: GuardSubject
    risk: str
    condition: str
    proof: Proof


def _guards(force: Force, subject: GuardSubject, proof: Proof, *entries: tuple[str, str, str]) -> tuple[Guard, ...]:
    return tuple(
        Guard(code=code, force=force, subject=subject, risk=risk, condition=condition, proof=proof)
        for code, risk, condition in entries
    )


_PLAN: Final = _guards(
    Force.REFUSED, GuardSubject.PLAN, Proof.FIGURES,
    ("hot_rows", "clients mostly wait for locks of a few rows, which says little about the server",
     "more clients than rows of which every transaction updates one (the scale of tpcb-like)"),
    ("growing_data", "later runs work on older and larger data",
     "a workload that writes, without a clone for every run"),
    ("unknown_before_reboots", "a rate, or the end of a ladder, would depend on the environments of one boot only",
     "a share of the maximum, or a ladder until throughput falls, and this machine is rebooted"),
    ("clients_numbered_twice", "clients of different machines have the same number in the script",
     "a script with :client_id, and a load from several machines"),
    ("too_few_connections", "a refused connection looks like a slow server",
     "max_connections below the number of clients"),
    ("too_little_memory", "the machine swaps", "shared_buffers above 80 % of memory"),
    ("not_to_be_paired", "sessions cannot be kept on CPUs",
     'placement = "paired" with sessions that end, or with a server or driver that cannot be placed'),
    ("not_to_be_sliced", "one environment works during the slice of another",
     "slices were asked for, but the environments cannot take turns"),
    ("too_little_disk", "a full disk ends the experiment",
     "the forecast of datasets, clones and WAL exceeds the free space"),
    ("mixed_suppliers", "differences between packagers look like differences between versions",
     "several suppliers along one factor, without [allow] mixed_suppliers"),
    ("mixed_compilers", "differences between compilers look like differences between versions",
     "several compiler lines or build systems, without [allow] mixed_compilers"),
    ("assertions", "the cost of assertions looks like the server's",
     "a server compiled with assertions, without [allow] assertions"),
)  # fmt: skip

_ENVIRONMENT: Final = (
    *_guards(
        Force.REFUSED, GuardSubject.ENVIRONMENT, Proof.PROVOKED,
        ("level_not_taken", "two environments are in fact the same",
         "settings, version, checksums or connection, read back from inside, are not those of the file"),
        ("script_failed", "failed statements count as throughput",
         "a script fails when it is tried before the first block"),
        ("environment_changed", "a continued study mixes two environments",
         "facts at the start of a continued study differ from those of its first run"),
    ),
)  # fmt: skip

_INVALID: Final = (
    *_guards(
        Force.INVALID, GuardSubject.RUN, Proof.PROVOKED,
        ("failed_transactions", "failed transactions count as throughput",
         "pgbench counts failed transactions, without [allow] failed_transactions"),
        ("client_saturated", "the client's limit looks like the server's",
         "CPU time of the driver above 90 % of what its threads can use"),
        ("fingerprint_changed", "an environment changed during the study",
         "facts at the start of the run differ from those of the environment's first run"),
        ("rate_not_kept", "latencies are those of a growing queue",
         "the lag behind a fixed rate grows by more than 1 % of the time: collapsed, without latencies"),
        ("failed", "a server that crashed would be missing from the report",
         "start, assertion, warm-up or driver failed"),
        ("collapsed", "an environment that ran out of a resource would be missing from the report",
         "connections or memory ran out at this load: a result of its own"),
    ),
    *_guards(
        Force.INVALID, GuardSubject.RUN, Proof.CAPTURE,
        ("emulated", "the speed of an emulator looks like that of a machine",
         "the machine is emulated by software, without hardware virtualisation"),
        ("unreadable", "output of an unknown form would be misread", "a parser met a line that it does not know"),
        ("no_transactions", "a run in which nothing ended looks like a slow one", "no transaction was completed"),
        ("inconsistent_data", "a server that loses work looks fast",
         "the data violate a condition of the workload after the run, or could not be checked"),
    ),
    *_guards(
        Force.INVALID, GuardSubject.RUN, Proof.FIGURES,
        ("objective_missed", "a rate that misses the limit looks like one that keeps it",
         "the latency limit is missed at every rate, down to 2 % of the maximum throughput: collapsed"),
    ),
)  # fmt: skip

_SUSPECT: Final = (
    *_guards(
        Force.SUSPECT, GuardSubject.RUN, Proof.PROVOKED,
        ("foreign_cpu", "other programs look like a slower server",
         "more than 0.25 CPUs (on large hosts 2 % of them) used by neither server, client nor pgstrata"),
    ),
    *_guards(
        Force.SUSPECT, GuardSubject.RUN, Proof.CAPTURE,
        ("near_ceiling", "the cost of the connection hides the cost of the workload",
         "throughput above 85 % of that of `select 1` with the same clients, threads, protocol and connection"),
        ("steal", "other virtual machines look like a slower server", "stolen time above 2 % of the host's CPUs"),
        ("swapped_in", "swapping slows the run down", "more than 256 pages were read from swap during the run"),
        ("clock_jump", "rates and latencies are computed with a wrong time",
         "the wall clock moved against the monotonic clock by more than 0.5 s"),
        ("skipped", "only transactions that were in time are counted",
         "more than 1 % skipped under a latency limit: latencies are not shown"),
        ("retried", "repeated work looks like a slow server", "the driver counts retried transactions"),
        ("no_checkpoint", "only some runs contain a checkpoint",
         "a running server does not allow CHECKPOINT to this user"),
        ("capture_failed", "missing statistics look like zeros", "statistics could not be read after the run"),
    ),
    *_guards(
        Force.SUSPECT, GuardSubject.RUN, Proof.FIGURES,
        ("objective_kept", "the highest rate that was tried looks like the highest possible one",
         "no step of the search missed the limit"),
        ("began_apart", "in a part of the run only some of the clients were active",
         "the machines of one load began more than 1 % of the run apart"),
    ),
    *_guards(
        Force.WARNING, GuardSubject.RUN, Proof.FIGURES,
        ("sampler_lost", "missing samples look like zeros",
         "a sampler did not start, ended early, had to be killed, or left output that is missing or unreadable"),
        ("counters_reset", "counts do not cover the whole run",
         "counters of the server fell, or were reset, between the readings before and after the run"),
        ("samples_missing", "samples do not cover the whole run",
         "no samples of sessions, host or counters in over a fifth of the time, or pg_wait_sampling cannot be used"),
        ("synthetic", "a declared value looks like a measured one",
         "the experiment has a table [synthetic]: its only metric is named as declared"),
        ("above_ceiling", "a ceiling that was measured during other work makes runs suspect",
         "throughput above that of `select 1`: no run is judged by this ceiling, and it is measured again"),
    ),
)  # fmt: skip

_COMPARISON: Final = (
    *_guards(
        Force.WARNING, GuardSubject.COMPARISON, Proof.PROVOKED,
        ("neighbours_differ", "other programs look like a slower server",
         "run by run, other programs used a quarter of the CPUs more in one environment; such blocks count"),
        ("checkpoints_differ", "checkpoints in the runs of one environment look like its property",
         "the number of checkpoints differs between the environments"),
        ("autovacuums_differ", "autovacuum in the runs of one environment looks like its property",
         "the number of tables that autovacuum finished differs between the environments"),
        ("imbalance", "the remaining runs are a selection", "more than a fifth of an environment's runs are invalid"),
    ),
    *_guards(
        Force.WARNING, GuardSubject.COMPARISON, Proof.FIGURES,
        ("suspect_runs", "the verdict does not show doubts about runs", "suspect runs are in the estimate"),
        ("not_steady", "a warm-up that goes on looks like a property of the environment",
         "throughput in the first fifth of the runs differs from the rest by 3 % or more (Student's t at 1 %)"),
        ("wal_differs", "full-page images after a checkpoint look like WAL of the workload",
         "WAL per transaction differs by more than a factor of two"),
        ("insufficient_blocks", "a chance result of a few runs looks like a difference",
         "too few blocks for an interval"),
        ("undecided", "a missing verdict looks like no difference",
         "the interval includes no difference, and differences above the threshold"),
        ("control_differs", "noise looks like an effect", "an environment that must not differ was found to differ"),
        ("unstable", "two states of an environment look like one",
         "the differences form two groups, or too many are outliers; a verdict only without an interval"),
        ("anomalies_differ", "an environment with occasional slow runs looks slower in general",
         "the runs of one environment are outliers more often (Fisher's exact test)"),
        ("small_and_early", "a small difference found early looks larger than it is",
         "a difference below 3 %, decided before the last block"),
        ("measured_apart", "drift between two parts of a block looks like a difference",
         "two environments did not take turns with each other in a block"),
        ("collapsed_cells", "a mean over some cells looks like one over all",
         "the environment collapsed in some cells"),
        ("cells_left_out", "a mean over some cells looks like one over all", "the baseline collapsed in some cells"),
        ("incomplete", "a study that was stopped looks complete", "fewer blocks than planned"),
        ("collapsed_runs", "the remaining runs are a selection", "some runs of an environment collapsed"),
        ("baseline_collapsed", "there is nothing to compare with", "the baseline ran out of a resource"),
        ("both_collapsed", "there is nothing to compare", "both environments ran out of a resource"),
        ("compilers_differ", "differences between compilers look like differences between versions",
         "compilers, flags or build systems differ, and the experiment allows it"),
        ("suppliers_differ", "differences between packagers look like differences between versions",
         "servers of two suppliers, and the experiment allows it"),
        ("built_with_assertions", "the cost of assertions looks like the server's",
         "assertions were compiled in, and the experiment allows it"),
    ),
)  # fmt: skip

_STUDY: Final = (
    *_guards(
        Force.WARNING, GuardSubject.STUDY, Proof.FIGURES,
        ("undeclared_difference", "the effect of a kernel, compiler or setting looks like that of the factor",
         "environments differ in facts that the experiment does not vary"),
        ("these_machines", "one machine is taken to represent all of its type",
         "servers of a study run on different machines"),
        ("equivalences_uncorrected", "several claims of no difference look like one that holds for all",
         "two or more headlines are equivalent, each at its own level"),
        ("these_instances", "the effect of one start looks like a property of the server",
         "running servers (dsn:) are compared and not restarted between runs"),
        ("defaults_differ", "the effect of a default looks like that of the version",
         "settings that nobody set differ between the servers"),
        ("checkpoint_free", "writing looks cheaper than it is with checkpoints",
         "a cell that writes, and no checkpoint in any of its runs"),
        ("cut_cycles", "a part of a checkpoint cycle looks like the mean",
         "a cell that writes, with fewer than two checkpoints in a run"),
        ("few_samples", "a few outliers decide a percentile",
         "fewer than 100 sampled transactions beyond the percentile: it is not given"),
    ),
    *_guards(
        Force.WARNING, GuardSubject.STUDY, Proof.CAPTURE,
        ("few_clients", "waking up an idle virtual CPU looks like latency of the server",
         "fewer clients than CPUs on a virtual machine, and less than 100 ms of CPU per transaction"),
        ("clock_source", "reading the clock looks like cost of the server",
         "a clock source that needs a system call (neither tsc nor a paravirtual one)"),
        ("huge_pages_fallback", "small pages are measured instead of huge ones",
         "huge_pages is set, and huge_pages_status is not on; not known before 17"),
        ("thp_always", "stalls for memory compaction of the kernel look like stalls of the server",
         "transparent huge pages are always on"),
        ("cpu_governor", "a CPU at low frequency looks like a slow server",
         "a frequency governor other than performance"),
    ),
)  # fmt: skip

_DATA: Final = _guards(
    Force.WARNING, GuardSubject.DATA, Proof.FIGURES,
    ("no_blocks", "changes of the machine between runs look like a difference", "the file has no column of blocks"),
    ("direction_assumed", "worse may look like better", "nothing says which direction is better"),
    ("order_of_file", "the order of measuring looks like the order of versions",
     "levels with numbers that are neither ascending nor descending in the file"),
    ("ignored_columns", "columns that are not read look used", "columns with unknown names"),
    ("insufficient_values", "a few runs look like enough for an interval", "too few values for an interval"),
    ("dependent_values", "seconds of one run look like independent runs",
     "successive values in the file are too similar"),
    ("blocks_left_out", "an incomplete block looks like a pair", "a block in which one environment is missing"),
    ("repeated_cells", "copied rows look like measurements",
     "two cells have exactly the same values in every environment"),
    ("repeated_environments", "a copied series looks like a measurement",
     "without blocks: two environments have exactly the same values in every cell"),
    ("identical", "a copy looks like a measurement", "both environments have the same values"),
    ("outliers", "a few stalls change the typical value", "values far from their median"),
    ("measured_once", "one run is taken to represent an environment", "an environment with a single value"),
    ("cold_start", "filling caches look like a property of the environment",
     "the first value is far worse than the others"),
    ("measured_in_sequence", "drift of the machine looks like a difference",
     "by their time stamps, all runs of one environment began before all runs of another"),
    ("repeats_drift", "a machine that warms up or ages looks like random scatter",
     "repeats rise or fall together (Kendall's S over all series at 1 %), typically by 1 % or more"),
    ("turns_contradicted", "successive runs look like runs in turns",
     "there are blocks, but by their time stamps all runs of one environment began before all runs of another"),
)  # fmt: skip

GUARDS: Final[Mapping[str, Guard]] = {
    guard.code: guard for guard in (*_PLAN, *_ENVIRONMENT, *_INVALID, *_SUSPECT, *_COMPARISON, *_STUDY, *_DATA)
}
"""All guards by code, in the order in which they are checked."""


def force_of(code: str) -> Force:
    """What follows from a reason. An unknown one, of another version of pgstrata, leaves its run suspect."""
    guard = GUARDS.get(code)
    return guard.force if guard is not None else Force.SUSPECT
