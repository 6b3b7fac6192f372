"""The guards: every way in which a benchmark would lie that pgstrata knows of, by the code of the reason given for it.

What belongs here: codes, what each is against, how hard it is, and how it was proven. How a guard finds out stands
where it is emitted (`conduct.judge`, `conduct.observe`, `compare`, `plan.refusals`); a test fails where a code is
emitted that is not listed, or where a listed one is emitted nowhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

MUCH_BACKGROUND_LOAD: Final = 0.25
"""Share of the CPUs that other processes take before a figure says more of them than of the server."""


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
    """The lie was made on real servers, and the guard answered."""
    CAPTURE = "capture only"
    """Shown on captures, real or shortened, because not every machine can be made to lie so."""
    FIGURES = "figures"
    """It judges figures of runs, or the plan, and was shown on such."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """One guard. `lie` is what would be believed without it, `sign` what it goes by."""

    code: str
    force: Force
    subject: GuardSubject
    lie: str
    sign: str
    proof: Proof


def _guards(force: Force, subject: GuardSubject, proof: Proof, *entries: tuple[str, str, str]) -> tuple[Guard, ...]:
    return tuple(
        Guard(code=code, force=force, subject=subject, lie=lie, sign=sign, proof=proof) for code, lie, sign in entries
    )


_PLAN: Final = _guards(
    Force.REFUSED, GuardSubject.PLAN, Proof.FIGURES,
    ("hot_rows", "waiting for locks of a few rows is taken for the server's speed",
     "more clients than rows of which every transaction updates one (the scale of tpcb-like)"),
    ("growing_data", "later runs work on older, larger data", "a workload that writes, without a clone for every run"),
    ("unknown_before_reboots", "a rate or the end of a ladder would follow from the environments of one boot alone",
     "a share of the maximum, or a ladder until throughput falls, where this machine is rebooted"),
    ("clients_numbered_twice", "clients of different machines share what the script means for one",
     "a script with :client_id, and a load from several machines"),
    ("too_few_connections", "a refused connection is taken for a slow server", "max_connections below the clients"),
    ("too_little_memory", "the machine swaps, and that is what is measured", "shared_buffers above 80 % of memory"),
    ("not_to_be_paired", "sessions are asked to stay on CPUs where nobody can keep them there",
     'placement = "paired" with sessions that end, or whose server or driver is not to be placed'),
    ("not_to_be_sliced", "one environment's work is done in the other one's slice",
     "slices were asked for where the environments cannot take turns"),
    ("too_little_disk", "a full disk ends the experiment half way", "forecast of datasets, clones and WAL"),
    ("mixed_suppliers", "packagers and their flags are taken for the version",
     "suppliers mixed along one factor, without [allow] mixed_suppliers"),
    ("mixed_compilers", "the compiler is taken for the version",
     "compiler lines or build systems differ, without [allow] mixed_compilers"),
    ("assertions", "assertions are taken for the server's own cost",
     "a server compiled with assertions, without [allow] assertions"),
)  # fmt: skip

_ENVIRONMENT: Final = (
    *_guards(
        Force.REFUSED, GuardSubject.ENVIRONMENT, Proof.PROVOKED,
        ("level_not_taken", "two environments are compared that are the same in truth",
         "every level is read back from inside: settings, version, checksums, connection"),
        ("script_failed", "errors are counted as throughput", "each script is tried once before the first block"),
        ("environment_changed", "a resumed study mixes two machines",
         "facts at the start of a resumed study are not those of its first run"),
    ),
)  # fmt: skip

_INVALID: Final = (
    *_guards(
        Force.INVALID, GuardSubject.RUN, Proof.PROVOKED,
        ("failed_transactions", "errors are counted as throughput",
         "pgbench counts failed transactions, without [allow] failed_transactions"),
        ("client_saturated", "the client's limit is taken for the server's",
         "CPU time of the driver above 90 % of what its threads can use"),
        ("fingerprint_changed", "one environment is two",
         "facts at the start of the run are not those of the environment's first run"),
        ("rate_not_kept", "latencies of a growing queue are taken for the server's",
         "the lag behind a fixed rate grows by more than 1 % of the time: collapsed, without latencies"),
        ("failed", "a server that died is left out in silence", "start, assertion, warm-up or driver failed"),
        ("collapsed", "an environment that ran out of a resource is left out in silence",
         "connections or memory ran out at this load: a result of its own"),
    ),
    *_guards(
        Force.INVALID, GuardSubject.RUN, Proof.CAPTURE,
        ("emulated", "an emulator's speed is taken for a machine's",
         "the machine is emulated by software, without hardware virtualisation"),
        ("unreadable", "evidence of an unknown shape is guessed at", "a parser met a line that it does not know"),
        ("no_transactions", "a run in which nothing ended is taken for a slow one", "not one transaction"),
        ("inconsistent_data", "a server that loses work, or does only half of it, is taken for a fast one",
         "the data violate a condition of the workload after the run, or could not be checked"),
    ),
    *_guards(
        Force.INVALID, GuardSubject.RUN, Proof.FIGURES,
        ("objective_missed", "a rate at which the limit was missed is taken for one that keeps it",
         "the latency limit is missed at every rate, down to 2 % of the maximum throughput: collapsed"),
    ),
)  # fmt: skip

_SUSPECT: Final = (
    *_guards(
        Force.SUSPECT, GuardSubject.RUN, Proof.PROVOKED,
        ("foreign_cpu", "somebody else's work is taken for a slower server",
         "more than 0.25 CPUs (on large hosts 2 % of them) busy with neither server, client nor pgstrata"),
    ),
    *_guards(
        Force.SUSPECT, GuardSubject.RUN, Proof.CAPTURE,
        ("near_ceiling", "the way to the server and back is taken for the workload",
         "throughput above 85 % of what `select 1` reaches with the same clients, threads, protocol and connection"),
        ("steal", "the hypervisor's other guests are taken for a slower server",
         "stolen time above 2 % of the host's CPUs"),
        ("swapped_in", "the swap is measured", "more than 256 pages came back from swap during the run"),
        ("clock_jump", "rates and latencies are over the wrong time",
         "the wall clock moved against the monotonic one by more than 0.5 s"),
        ("skipped", "the transactions that were in time are taken for all",
         "more than 1 % skipped under a latency limit: latencies are dropped"),
        ("retried", "work that was done twice is taken for a slow server", "the driver counts retried transactions"),
        ("no_checkpoint", "a checkpoint falls into some runs only",
         "a running server does not allow CHECKPOINT to this user"),
        ("capture_failed", "what was not seen is taken for nothing", "statistics could not be read after the run"),
    ),
    *_guards(
        Force.SUSPECT, GuardSubject.RUN, Proof.FIGURES,
        ("objective_kept", "the highest rate that was tried is taken for the highest possible one",
         "no step of the search missed the limit"),
        ("began_apart", "a part of the clients is taken for all of them",
         "the machines of one load began more than 1 % of the run apart"),
    ),
    *_guards(
        Force.WARNING, GuardSubject.RUN, Proof.FIGURES,
        ("sampler_lost", "what a sampler did not see is taken for nothing",
         "a sampler could not be started, ended too early, had to be killed, or left nothing, or what nobody can read"),
        ("counters_reset", "what a server counted from a new beginning is taken for what it counted in a run",
         "counters of the server fell, or were reset, between the captures around the run"),
        ("samples_missing", "what was seen in some seconds is taken for what happened in all",
         "no samples of sessions, host or counters in over a fifth of the time; or pg_wait_sampling is of no use"),
        ("synthetic", "a declared value is taken for a measured one",
         "the experiment has a table [synthetic]: its only metric says of itself that it is declared"),
        ("above_ceiling", "a ceiling that was measured beside other work makes runs suspect",
         "throughput above what `select 1` reached: no run is judged by that ceiling, and it is measured again"),
    ),
)  # fmt: skip

_COMPARISON: Final = (
    *_guards(
        Force.WARNING, GuardSubject.COMPARISON, Proof.PROVOKED,
        ("neighbours_differ", "somebody else's work is taken for a slower server",
         "others beside one environment only, by a quarter of the CPUs, except in slices: such blocks count"),
        ("checkpoints_differ", "a checkpoint beside one environment is taken for a property of it",
         "checkpoints counted by the server differ between the environments"),
        ("autovacuums_differ", "autovacuum beside one environment is taken for a property of it",
         "tables that autovacuum finished with differ between the environments"),
        ("imbalance", "the lucky runs are taken for all", "more than a fifth of an environment's runs are invalid"),
    ),
    *_guards(
        Force.WARNING, GuardSubject.COMPARISON, Proof.FIGURES,
        ("suspect_runs", "doubts about runs are lost on the way to the verdict", "suspect runs are in the estimate"),
        ("not_steady", "a warm-up that never ended is taken for the environment",
         "throughput in the first fifth of the runs differs from the rest by 3 % and more (Student's t at 1 %)"),
        ("wal_differs", "full-page images after a checkpoint are taken for the workload's",
         "WAL per transaction differs by more than a factor of two"),
        ("insufficient_blocks", "a few lucky runs are taken for a difference", "too few blocks for any interval"),
        ("undecided", "no verdict is taken for no difference", "the interval holds both"),
        ("control_differs", "noise is taken for an effect", "an environment that must not differ came out different"),
        ("unstable", "two states of an environment are taken for one",
         "the differences fall into two groups, or too many stray; a verdict only where there is no interval"),
        ("anomalies_differ", "an environment that stumbles is taken for a slower one",
         "the runs of one environment stray more often (Fisher's exact test)"),
        ("small_and_early", "the luck of an early look is taken for the effect", "found early, and below 3 %"),
        ("measured_apart", "drift between two passes is taken for the environment",
         "two environments did not take turns with each other in a block"),
        ("collapsed_cells", "a mean over the easy cells is taken for all", "the environment collapsed in some cells"),
        ("cells_left_out", "a mean over some cells is taken for all", "the baseline collapsed in some cells"),
        ("incomplete", "a study that stopped is taken for a whole one", "fewer blocks than planned"),
        ("collapsed_runs", "the lucky runs are taken for all", "some runs of an environment collapsed"),
        ("baseline_collapsed", "nothing is compared with something", "the baseline ran out of a resource"),
        ("both_collapsed", "nothing is compared with nothing", "both ran out of a resource"),
        ("compilers_differ", "the compiler is taken for the version",
         "compilers, flags or build systems differ, which the experiment allows"),
        ("suppliers_differ", "packagers and their flags are taken for the version",
         "servers of two kinds, which the experiment allows"),
        ("built_with_assertions", "assertions are taken for the server's own cost",
         "assertions were compiled in, which the experiment allows"),
    ),
)  # fmt: skip

_STUDY: Final = (
    *_guards(
        Force.WARNING, GuardSubject.STUDY, Proof.FIGURES,
        ("undeclared_difference", "kernel, compiler or a setting nobody named is taken for the factor",
         "facts of the environments are compared, and what the experiment does not explain is told"),
        ("these_machines", "one machine is taken for all of its kind",
         "servers of a study run on different machines"),
        ("equivalences_uncorrected", "several claims of no difference are taken for one that holds for all",
         "two headlines and more are equivalent, each at its own level"),
        ("these_instances", "the luck of one start is taken for the server",
         "servers that were running already (dsn:) are compared, and not restarted between runs"),
        ("defaults_differ", "another default is taken for another version", "settings nobody set and that differ"),
        ("checkpoint_free", "writing without its checkpoints is taken for all of it",
         "a cell that writes, and no checkpoint in any of its runs"),
        ("cut_cycles", "a piece of a checkpoint cycle is taken for the mean",
         "a cell that writes, with fewer than two checkpoints in a run"),
        ("few_samples", "a handful of outliers is taken for a percentile",
         "fewer than 100 sampled transactions beyond the percentile: it is not given"),
    ),
    *_guards(
        Force.WARNING, GuardSubject.STUDY, Proof.CAPTURE,
        ("few_clients", "waking up an idle virtual CPU is taken for the server's latency",
         "fewer clients than CPUs on a virtual machine, and less than 100 ms of CPU per transaction"),
        ("clock_source", "reading the clock is taken for the server's cost",
         "a clock source that takes a system call (neither tsc nor a paravirtual one)"),
        ("huge_pages_fallback", "small pages are taken for huge ones",
         "huge_pages asked for, and huge_pages_status is not on; before 17 nothing says so"),
        ("thp_always", "the kernel's compaction of memory is taken for the server's stalls",
         "transparent huge pages are always on"),
        ("cpu_governor", "a CPU that is slow to wake is taken for a slow server",
         "a frequency governor other than performance"),
    ),
)  # fmt: skip

_DATA: Final = _guards(
    Force.WARNING, GuardSubject.DATA, Proof.FIGURES,
    ("no_blocks", "runs one after the other are taken for runs side by side", "the file has no column of blocks"),
    ("direction_assumed", "worse is taken for better", "nothing says which way is better"),
    ("order_of_file", "the order in which levels were measured is taken for that of their versions",
     "levels with numbers that the file has neither ascending nor descending"),
    ("ignored_columns", "columns that nobody reads are taken for used", "columns with other names"),
    ("insufficient_values", "three runs against three are taken for an interval", "too few values for any interval"),
    ("dependent_values", "seconds of one run are taken for runs", "neighbours in the file are too alike"),
    ("blocks_left_out", "half a block is taken for a pair", "a block in which one environment is missing"),
    ("repeated_cells", "rows that were copied are taken for measurements",
     "two cells have the same values in every environment, digit for digit"),
    ("repeated_environments", "a series that was copied is taken for a measurement",
     "without blocks: two environments have the same values in every cell, digit for digit"),
    ("identical", "a copy is taken for a measurement", "the values of both environments are the same"),
    ("outliers", "a few stalls are taken for the typical run", "values far from their median"),
    ("measured_once", "one run is taken for what an environment does", "an environment with a single value"),
    ("cold_start", "caches that fill are taken for the environment", "the first value is far worse than the others"),
    ("measured_in_sequence", "a machine that drifts is taken for the environment that was measured last",
     "by their time stamps, all runs of one environment began before all runs of another"),
    ("repeats_drift", "a machine that warms up or ages is taken for scatter",
     "repeats rise or fall together (Kendall's S over all series at 1 %), typically by 1 % or more"),
    ("turns_contradicted", "runs one after the other are taken for turns",
     "there are blocks, but by their time stamps all runs of one environment began before all runs of another"),
)  # fmt: skip

GUARDS: Final[Mapping[str, Guard]] = {
    guard.code: guard for guard in (*_PLAN, *_ENVIRONMENT, *_INVALID, *_SUSPECT, *_COMPARISON, *_STUDY, *_DATA)
}
"""All guards by code, in the order in which they are met."""


def force_of(code: str) -> Force:
    """How hard a reason is; one that is not known, as of another version of pgstrata, leaves its run suspect."""
    guard = GUARDS.get(code)
    return guard.force if guard is not None else Force.SUSPECT
