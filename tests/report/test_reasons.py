"""Every reason has its sentence, and each sentence is pinned here and nowhere else."""

import math
import re
from pathlib import Path

import pytest

import pgstrata
from pgstrata.model.experiment import Interleave, Placement
from pgstrata.model.guards import GUARDS, GuardSubject
from pgstrata.model.plan import Design
from pgstrata.model.reasons import Notice, Reason
from pgstrata.report.sentences.reasons import SAID, say_placement, say_reason, say_why_so
from studies import make_environment


def lost(how, said="", names=("seconds",)):
    return Reason(code="sampler_lost", how=how, names=names, said=said)


def missing(how, **figures):
    return Reason(code="samples_missing", how=how, **figures)


def failures(**figures):
    """The same case of runs that failed and of those that collapsed."""
    return lambda text: [(Reason(code=code, **figures), text) for code in ("failed", "collapsed")]


OF_WAITS = "pg_wait_sampling is not used: {}; wait events are those of pg_stat_activity"
UNSEEN = "for 31% of the measured time"
SOURCE = Path(pgstrata.__file__).parent
GIVEN = re.compile(r'\b(?:Reason|Notice)\(\s*code="(\w+)"(?:, how="([\w ]+)")?')
OF_RUNS = [
    (Reason(code="no_checkpoint"), "no privilege for CHECKPOINT before the run"),
    (
        Reason(code="objective_kept", names=("p99 < 20ms",), value=1234.4),
        (
            "p99 < 20ms was kept at every rate that was tried, up to 1234 transactions per second: the highest rate "
            "may be above that"
        ),
    ),
    (
        Reason(code="objective_missed", names=("p99 < 20ms",), value=12.34),
        "p99 < 20ms was missed at every rate, down to 12.3 transactions per second",
    ),
    (Reason(code="no_transactions"), "no transaction was completed"),
    (
        Reason(code="inconsistent_data", names=("condition 1", "condition 3")),
        "the data are inconsistent after the run: condition 1, condition 3",
    ),
    (
        Reason(code="inconsistent_data", how="unseen", said="no connection"),
        "the consistency check after the run failed: no connection",
    ),
    (Reason(code="began_apart", seconds=0.414), "the machines of the client began 0.41 s apart"),
    (
        Reason(code="capture_failed", names=("pgstat",), said="no {connection}"),
        "pgstat could not be read after the run: no {connection}",
    ),
    (Reason(code="collapsed", said="out of memory"), "out of memory"),
    (
        Reason(code="emulated", said="QEMU"),
        "this machine is emulated by software (QEMU): its times say nothing about real hardware",
    ),
    (
        Reason(code="emulated", how="client", said="QEMU"),
        "the client's machine is emulated by software (QEMU): its times say nothing about real hardware",
    ),
    (
        Reason(code="synthetic"),
        "its value is declared under [synthetic], not measured: it says nothing of speed",
    ),
    (Reason(code="failed", said="the server died"), "the server died"),
    (Reason(code="failed", how="no summary"), "the driver ended without a summary"),
    *failures(how="died", said="PANIC: x")("the server died during the run: PANIC: x"),
    *failures(how="broke off", said="ERROR: x")("the driver broke off: ERROR: x"),
    *failures(how="broke off silently")("the driver broke off: no message"),
    *failures(how="no turn")("it was not measured, because its client had ended before its first slice"),
    *failures(how="no turn", said="killed")(
        "it was not measured, because its client had ended before its first slice; killed"
    ),
    *failures(how="overdue", seconds=60)("the driver did not end within 60 s after its time and was stopped"),
    *failures(how="deaf", seconds=60)("the driver did not end within 60 s of being asked to and was stopped"),
    (Reason(code="unreadable", said="unknown line"), "unknown line"),
    (
        Reason(code="counters_reset", names=("database", "io")),
        "the server's counters were reset during the run (database, io): their figures are missing for this run",
    ),
    (
        Reason(code="fingerprint_changed", names=("a 1 -> 2",)),
        "the environment has changed since its first run: a 1 -> 2",
    ),
    (
        Reason(code="fingerprint_changed", names=("a 1 -> 2", "b 3 -> 4"), how="more", value=3),
        "the environment has changed since its first run: a 1 -> 2; b 3 -> 4 and 3 more",
    ),
    (
        Reason(code="client_saturated", value=1.9, of=2),
        "the client used 1.90 of the 2 CPUs that its threads can use (95%): its own limit was measured, not the server's",
    ),
    (Reason(code="clock_jump", seconds=2.06), "the wall clock jumped by +2.1 s"),
    (
        Reason(code="failed_transactions", value=23, of=35),
        "23 transactions failed (65.71%); [allow] failed_transactions accepts that",
    ),
    (Reason(code="foreign_cpu", value=1.5), "other processes used 1.50 CPUs"),
    (
        Reason(code="foreign_cpu", value=1.5, how="client"),
        "other processes used 1.50 CPUs of the client's machine",
    ),
    (
        Reason(code="above_ceiling", value=81_000, of=51_600),
        (
            "81000 transactions per second are 157% of the 51600 that `select 1` reached with the same clients: that "
            "limit was measured too low, and no run is judged by it"
        ),
    ),
    (
        Reason(code="near_ceiling", value=100_000, of=110_000),
        (
            "100000 transactions per second are 91% of the 110000 that `select 1` reached with the same clients: "
            "throughput is limited by the client round trip, not by the query"
        ),
    ),
    (
        Reason(code="rate_not_kept", value=100),
        (
            "the lag behind the rate grew by 100 ms in each second: the server cannot keep this rate, and latencies "
            "only show how a queue grows"
        ),
    ),
    (Reason(code="retried", value=12), "12 transactions were retried"),
    (
        Reason(code="skipped", value=30, of=100),
        (
            "30 transactions (30%) were skipped because they were already late: the latencies of the others are not "
            "shown"
        ),
    ),
    (Reason(code="steal", value=0.2, of=2), "the hypervisor kept 0.20 of 2 CPUs from this machine"),
    (
        Reason(code="steal", value=0.5, of=4, how="client"),
        "the hypervisor kept 0.50 of 4 CPUs from the client's",
    ),
    (Reason(code="swapped_in", value=1800), "1800 pages came back from swap"),
    (lost("not started", said="no room"), "the sampler seconds could not be started: no room"),
    (lost("ended", said="FATAL: gone"), "the sampler seconds ended before the run did: FATAL: gone"),
    (lost("silent"), "the sampler seconds wrote nothing: no reason given"),
    (lost("deaf", said="busy"), "the sampler seconds did not end when it was told to: busy"),
    (lost("unreadable", "line 3"), "the output of the sampler seconds cannot be read: line 3"),
    (lost("plans", "no JSON", ()), "plans cannot be read: no JSON"),
    (
        missing("pgstat", value=0.31),
        f"counters of the server were not read {UNSEEN}, which its figures leave out",
    ),
    (
        missing("seconds", value=0.31),
        f"the host and the server's processes were not sampled {UNSEEN}, which figures by the second leave out",
    ),
    (
        missing("sessions", value=0.31),
        f"sessions were not sampled {UNSEEN}: what they waited for is known for the rest only",
    ),
    (missing("short", seconds=1.04), OF_WAITS.format("its profile was read for 1.0 s of the measured time")),
    (missing("reconnected"), OF_WAITS.format("sessions came and went")),
    (missing("reset"), OF_WAITS.format("somebody reset its profile during the run")),
    (
        missing("rare", value=7.5),
        OF_WAITS.format(
            "it looks 7.5 times a second (pg_wait_sampling.profile_period), less often than pgstrata itself"
        ),
    ),
    (Reason(code="steal", text="as it was said {then}"), "as it was said {then}"),
    (Reason(code="of_a_later_version"), "of_a_later_version"),
]
OF_DESIGNS = [
    (
        Reason(code="by_periods", names=("cpu.quota",)),
        "cpu.quota is granted by period: quota that is saved up during a pause would make a slice faster than a run",
    ),
    (Reason(code="driver", names=("plain",)), "the driver plain cannot count transactions by slice"),
    (Reason(code="fixed_rate"), "a fixed rate cannot be paused"),
    (Reason(code="flushing"), "it writes, and a paused server would go on flushing during another server's slice"),
    (Reason(code="long_transactions"), "a transaction may last longer than a slice"),
    (
        Reason(code="for_one", names=("filesystem", "limits.memory")),
        "filesystem, limits.memory: servers that are up together would share what is meant for one",
    ),
    (
        Reason(code="memory", value=30 * 1024**3, of=32 * 1024**3),
        "all servers together would need 30 GB of 32 GB of memory",
    ),
    (
        Reason(code="moving", names=("fsync",)),
        "fsync defers work, which a paused server would do during another server's slice",
    ),
    (Reason(code="nothing_written"), "the environments can be up together, and nothing is written"),
    (Reason(code="rebooted"), "the control is booted a second time"),
    (
        Reason(code="of_host", names=("thp",)),
        "thp cannot differ between servers that are up together on one host",
    ),
    (Reason(code="profile"), "a profile of statements would count the pauses"),
    (Reason(code="reset", names=("restart",)), 'reset = "restart" keeps a server from run to run'),
    (Reason(code="running"), "pgstrata does not pause servers that it has not started"),
    (Reason(code="searched"), "the search for the highest rate within the objective runs in one environment at a time"),
    (Reason(code="runs_asked"), "run by run, as asked"),
    (
        Reason(code="several_machines"),
        "the servers are on several machines, and taking turns removes only noise that they share",
    ),
    (
        Reason(code="clients_apart"),
        "the load comes from different machines, and taking turns removes only noise that they share",
    ),
    (Reason(code="load_divided"), "the load comes from several machines at once"),
    (Reason(code="slices_asked"), "as asked"),
    (Reason(code="together"), "the environments can be up together"),
    (Reason(code="apart_free"), "client and server are on different machines"),
    (Reason(code="asks_scheduling", names=("cpu.policy",)), "cpu.policy is about where processes run"),
    (Reason(code="not_ours"), "a server that is running already is not moved to other CPUs"),
    (Reason(code="not_placeable", names=("other",)), "the driver other cannot be divided among CPUs"),
    (Reason(code="numbered_clients"), "its script uses :client_id, which each client process counts from 0"),
    (Reason(code="one_profile"), "a profile of statements comes from one client process"),
    (
        Reason(code="parallel_free", names=("max_parallel_workers",)),
        "max_parallel_workers: parallel workers run where the kernel puts them",
    ),
    (Reason(code="rate_free"), "at a fixed rate CPUs are not the limit"),
    (Reason(code="sessions_end"), "each transaction has a session of its own"),
    (
        Reason(code="written_apart"),
        "it writes, and what a slice wrote can be flushed before the next one on the client's machine only",
    ),
]


NOTICES = [
    (Notice(code="clone_left", said="busy"), "a clone could not be removed: busy"),
    (
        Notice(code="connection_broke", names=("ssh:db1",), said="the preflight of b: gone"),
        "the connection to ssh:db1 broke in the preflight of b: gone",
    ),
    (
        Notice(code="emulated_host", said="QEMU"),
        "this machine is emulated by software (QEMU): every run will be invalid, so there will be no verdict",
    ),
    (
        Notice(code="emulated_host", how="other", names=("ssh:db1",), said="QEMU"),
        "ssh:db1 is emulated by software (QEMU): every run will be invalid, so there will be no verdict",
    ),
    (
        Notice(code="declared_values"),
        (
            "the values of this experiment are declared under [synthetic], not measured: its verdicts say nothing "
            "about speed"
        ),
    ),
    (Notice(code="host_still_lost", names=("ssh:db1",), said="no route"), "ssh:db1: no route"),
    (
        Notice(code="ladder_ends", names=("x-c8", "x-c16")),
        "throughput has fallen in every environment: x-c8, x-c16 left out",
    ),
    (Notice(code="no_plans", names=("b01/a/c",), said="no room"), "no plans of b01/a/c: no room"),
    (Notice(code="preflight", names=("b",)), "the preflight of b"),
    (
        Notice(code="side_by_side", value=2),
        "environments are measured at the same time in 2 groups of machines that share nothing",
    ),
    (Notice(code="reconnected", names=("ssh:db1",)), "ssh:db1 is connected again: lost runs are repeated"),
    (Notice(code="reconnecting", names=("ssh:db1",), seconds=5.0), "connecting to ssh:db1 again in 5 s"),
    (Notice(code="runs_needed", how="all"), "all of them are needed"),
    (Notice(code="runs_needed", how="at most"), "a comparison stops once it is decided"),
]
HOST_CHANGED = "it was measured under other conditions: "
OF_PLANS = [
    (
        Reason(code="few_blocks", value=3, of=8),
        (
            "blocks = 3 allows no verdict, because an interval needs at least 8; leave blocks out, and measuring stops "
            "once the question is answered"
        ),
    ),
    (
        Reason(code="run_unused", names=("a", "b"), seconds=900, value=2.0),
        (
            "run = 15 min has no effect on a, b: environments take turns in slices, and a visit measures each for 2 s. "
            'Write interleave = "runs" for full runs, which take much longer to a verdict'
        ),
    ),
    (
        Reason(code="budget_blocks", seconds=300, value=4, of=24),
        "the budget of 5 min holds about 4 of 24 blocks: the run ends after the last whole block that fits",
    ),
    (
        Reason(code="budget_blocks", seconds=math.inf, value=4, of=24),
        "the budget of inf holds about 4 of 24 blocks: the run ends after the last whole block that fits",
    ),
    (
        Reason(code="budget_verdict", seconds=600, value=9),
        "the budget is too short for an interval, which needs at least 9 blocks: they take 10 min",
    ),
    (
        Reason(code="data_exceed", how="shared_buffers", said="tpcc", value=100, of=2**32),
        "tpcc: data exceed shared_buffers (4 GB) from scale 100 on",
    ),
    (
        Reason(code="data_exceed", how="shared_buffers of some", names=("a", "b"), said="tpcc", value=100, of=2**32),
        "tpcc: data exceed 4 GB, the shared_buffers of a, b, from scale 100 on",
    ),
    (
        Reason(code="data_exceed", how="memory", said="tpcc", value=1000, of=2**33),
        "tpcc: data exceed the memory of the server (8 GB) from scale 1000 on",
    ),
    (
        Reason(code="data_exceed", how="memory of some", names=("a",), said="tpcc", value=1000, of=2**33),
        "tpcc: data exceed 8 GB, the memory of a, from scale 1000 on",
    ),
    (
        Reason(code="data_exceed", how="shared_buffers one scale", said="tpcc", value=100, of=2**32),
        "tpcc: data exceed shared_buffers (4 GB)",
    ),
    (
        Reason(
            code="data_exceed", how="shared_buffers of some one scale", names=("a",), said="tpcc", value=100, of=2**32
        ),
        "tpcc: data exceed 4 GB, the shared_buffers of a",
    ),
    (
        Reason(code="data_exceed", how="memory one scale", said="tpcc", value=100, of=2**33),
        "tpcc: data exceed the memory of the server (8 GB)",
    ),
    (
        Reason(code="data_exceed", how="memory of some one scale", names=("a",), said="tpcc", value=100, of=2**33),
        "tpcc: data exceed 8 GB, the memory of a",
    ),
    (
        Reason(code="too_long", value=8, seconds=172800, of=86400),
        (
            "8 blocks, the fewest that give an interval, take 48 h, longer than 24 h; changes that shorten this follow, if "
            "there are any"
        ),
    ),
    (
        Reason(code="offer", names=('run = "30s"', "clients = [1, 64]"), value=8, seconds=3600),
        'with run = "30s", clients = [1, 64], 8 blocks would take 1 h',
    ),
    (
        Reason(code="rising_load"),
        (
            'order = "rising": in every visit fewer clients come first, so that load and time are confounded. What builds up '
            "during a visit looks like an effect of the load. Environments are still compared at the same load"
        ),
    ),
    (
        Reason(code="floor_ahead", said="2026-03-03"),
        "it was measured on 2026-03-03, which is in the future: check the clock",
    ),
    (Reason(code="floor_few", value=11, of=12), "it rests on 11 differences, and at least 12 are needed"),
    (Reason(code="floor_few", how="single", of=12), "it rests on 1 difference, and at least 12 are needed"),
    (Reason(code="floor_host", names=("cpu", "kernel")), f"{HOST_CHANGED}cpu, kernel changed"),
    (Reason(code="floor_host", how="and more", names=("a", "b"), value=4), f"{HOST_CHANGED}a, b and 4 more changed"),
    (Reason(code="floor_host", how="client"), f"{HOST_CHANGED}the client is on another machine"),
    (Reason(code="floor_host", how="other"), f"{HOST_CHANGED}it is another machine"),
    (Reason(code="floor_old", said="2026-01-29", value=30), "it was measured on 2026-01-29, more than 30 days ago"),
    (
        Reason(code="floor_outliers", value=3, of=13),
        "3 of its 13 differences are outliers, which it does not describe",
    ),
    (Reason(code="floor_zero"), "it is zero: most of its differences are exactly zero, which real noise never is"),
    (
        Reason(code="room_unknown", names=("ssh:db1", "ssh:db2")),
        "ssh:db1 and ssh:db2: free memory and disk space there are checked when the run starts",
    ),
]
ALL = [*OF_RUNS, *OF_DESIGNS, *OF_PLANS, *NOTICES]


@pytest.mark.parametrize(("reason", "sentence"), ALL, ids=lambda value: getattr(value, "code", ""))
def test_a_reason_is_told_in_these_words(reason, sentence):
    assert say_reason(reason) == sentence


def test_every_case_of_every_reason_is_among_them():
    cases = {f"{reason.code} {reason.how}".rstrip() for reason, _ in ALL if not reason.text}
    assert cases == {*SAID, "of_a_later_version"}


def test_every_reason_that_is_given_has_its_words():
    given = [found for path in SOURCE.rglob("*.py") for found in GIVEN.findall(path.read_text())]
    assert len(given) > len(OF_DESIGNS)
    assert {f"{code} {how}" if how else code for code, how in given} - {*SAID} <= {"sampler_lost", "samples_missing"}


def test_every_code_of_a_run_has_its_words():
    of_runs = {code for code, guard in GUARDS.items() if guard.subject is GuardSubject.RUN}
    assert of_runs == {reason.code for reason, _ in OF_RUNS} - {"of_a_later_version"}


def test_a_design_without_a_reason_has_no_words():
    assert say_why_so(Design(cell="c", interleave=Interleave.RUNS)) == ""


def test_where_sessions_ran_is_told():
    paired = Design(cell="c", interleave=Interleave.SLICES, placement=Placement.PAIRED)
    assert say_placement(paired) == (
        "Sessions were paired with CPUs: client and backend shared one, the same in all environments of a visit; "
        "the unlogged stretches ran free"
    )
    by_run = Design(cell="c", interleave=Interleave.RUNS, placement=Placement.PAIRED)
    assert say_placement(by_run).endswith("; all figures are of paired sessions, free ones were not measured")
    environments = [make_environment(each, placement=Placement(each)) for each in ("free", "paired")]
    assert say_placement(by_run, environments).startswith("Sessions were paired with CPUs in some environments")
    assert say_placement(by_run, environments[:1]) == ""
    free = Design(cell="c", interleave=Interleave.RUNS, free_because=Reason(code="rate_free"))
    assert say_placement(free) == "Sessions ran where the kernel put them: at a fixed rate CPUs are not the limit"
    assert say_placement(Design(cell="c", interleave=Interleave.RUNS)) == ""


def test_a_code_that_nobody_knows_is_said_as_it_is():
    assert say_reason(Reason(code="{0} of {never}", how="{much}")) == "{0} of {never}"
