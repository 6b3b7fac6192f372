"""Reasons in sentences without a full stop: the words of `model.reasons`, which are made nowhere else."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from pgstrata.model.experiment import Environment, Placement
from pgstrata.model.plan import Design, Plan
from pgstrata.model.reasons import DATA_EXCEED, RISING_LOAD, Reason
from pgstrata.report.sentences.names import name_environment
from pgstrata.units import render_bytes, render_digits, render_duration

_OF_WAITS: Final = "pg_wait_sampling is not used: {}; wait events are those of pg_stat_activity"
_OF_HOSTS: Final = "it was measured under other conditions: {}"
_FAILURES: Final = {
    "": "{said}",
    " broke off": "the driver broke off: {said}",
    " broke off silently": "the driver broke off: no message{more}",
    " deaf": "the driver did not end within {seconds:.0f} s of being asked to and was stopped{more}",
    " died": "the server died during the run: {said}",
    " no turn": "it was not measured, because its client had ended before its first slice{more}",
    " overdue": "the driver did not end within {seconds:.0f} s after its time and was stopped{more}",
}
_OF_RUNS: Final = {
    "above_ceiling": "{value:.0f} transactions per second are {share:.0%} of the {of:.0f} that `select 1` reached with "
    "the same clients: that limit was measured too low, and no run is judged by it",
    "began_apart": "the machines of the client began {seconds:.2f} s apart",
    "capture_failed": "{names} could not be read after the run: {said}",
    "client_saturated": "the client used {value:.2f} of the {of:.0f} CPUs that its threads can use ({share:.0%}): its "
    "own limit was measured, not the server's",
    "clock_jump": "the wall clock jumped by {seconds:+.1f} s",
    **{f"collapsed{how}": text for how, text in _FAILURES.items()},
    "counters_reset": "the server's counters were reset during the run ({names}): their figures are missing for this "
    "run",
    "emulated": "this machine is emulated by software ({said}): its times say nothing about real hardware",
    "emulated client": "the client's machine is emulated by software ({said}): its times say nothing about real "
    "hardware",
    **{f"failed{how}": text for how, text in _FAILURES.items()},
    "failed no summary": "the driver ended without a summary",
    "failed_transactions": "{value:.0f} transactions failed ({share:.2%}); [allow] failed_transactions accepts that",
    "fingerprint_changed": "the environment has changed since its first run: {facts}",
    "fingerprint_changed more": "the environment has changed since its first run: {facts} and {value:.0f} more",
    "foreign_cpu": "other processes used {value:.2f} CPUs",
    "foreign_cpu client": "other processes used {value:.2f} CPUs of the client's machine",
    "inconsistent_data": "the data are inconsistent after the run: {names}",
    "inconsistent_data unseen": "the consistency check after the run failed: {said}",
    "near_ceiling": "{value:.0f} transactions per second are {share:.0%} of the {of:.0f} that `select 1` reached with "
    "the same clients: throughput is limited by the client round trip, not by the query",
    "no_checkpoint": "no privilege for CHECKPOINT before the run",
    "no_transactions": "no transaction was completed",
    "objective_kept": "{names} was kept at every rate that was tried, up to {value:.0f} transactions per second: the "
    "highest rate may be above that",
    "objective_missed": "{names} was missed at every rate, down to {value:digits} transactions per second",
    "rate_not_kept": "the lag behind the rate grew by {value:.0f} ms in each second: the server cannot keep this "
    "rate, and latencies only show how a queue grows",
    "retried": "{value:.0f} transactions were retried",
    "sampler_lost deaf": "the sampler {names} did not end when it was told to: {said}",
    "sampler_lost ended": "the sampler {names} ended before the run did: {said}",
    "sampler_lost not started": "the sampler {names} could not be started: {said}",
    "sampler_lost plans": "plans cannot be read: {said}",
    "sampler_lost silent": "the sampler {names} wrote nothing: {said}",
    "sampler_lost unreadable": "the output of the sampler {names} cannot be read: {said}",
    "samples_missing pgstat": "counters of the server were not read for {value:.0%} of the measured time, which its "
    "figures leave out",
    "samples_missing rare": _OF_WAITS.format(
        "it looks {value:.1f} times a second (pg_wait_sampling.profile_period), less often than pgstrata itself"
    ),
    "samples_missing reconnected": _OF_WAITS.format("sessions came and went"),
    "samples_missing reset": _OF_WAITS.format("somebody reset its profile during the run"),
    "samples_missing seconds": "the host and the server's processes were not sampled for {value:.0%} of the measured "
    "time, which figures by the second leave out",
    "samples_missing sessions": "sessions were not sampled for {value:.0%} of the measured time: what they waited for "
    "is known for the rest only",
    "samples_missing short": _OF_WAITS.format("its profile was read for {seconds:.1f} s of the measured time"),
    "skipped": "{value:.0f} transactions ({share:.0%}) were skipped because they were already late: the latencies of "
    "the others are not shown",
    "steal": "the hypervisor kept {value:.2f} of {of:.0f} CPUs from this machine",
    "steal client": "the hypervisor kept {value:.2f} of {of:.0f} CPUs from the client's",
    "synthetic": "its value is declared under [synthetic], not measured: it says nothing of speed",
    "swapped_in": "{value:.0f} pages came back from swap",
    "unreadable": "{said}",
}
_OF_DESIGNS: Final = {
    "by_periods": "{names} is granted by period: quota that is saved up during a pause would make a slice faster than "
    "a run",
    "driver": "the driver {names} cannot count transactions by slice",
    "fixed_rate": "a fixed rate cannot be paused",
    "flushing": "it writes, and a paused server would go on flushing during another server's slice",
    "for_one": "{names}: servers that are up together would share what is meant for one",
    "load_divided": "the load comes from several machines at once",
    "long_transactions": "a transaction may last longer than a slice",
    "memory": "all servers together would need {value:bytes} of {of:bytes} of memory",
    "moving": "{names} defers work, which a paused server would do during another server's slice",
    "nothing_written": "the environments can be up together, and nothing is written",
    "rebooted": "the control is booted a second time",
    "of_host": "{names} cannot differ between servers that are up together on one host",
    "profile": "a profile of statements would count the pauses",
    "reset": 'reset = "{names}" keeps a server from run to run',
    "running": "pgstrata does not pause servers that it has not started",
    "runs_asked": "run by run, as asked",
    "several_machines": "the servers are on several machines, and taking turns removes only noise that they share",
    "slices_asked": "as asked",
    "together": "the environments can be up together",
    "clients_apart": "the load comes from different machines, and taking turns removes only noise that they share",
    "apart_free": "client and server are on different machines",
    "asks_scheduling": "{names} is about where processes run",
    "not_ours": "a server that is running already is not moved to other CPUs",
    "not_placeable": "the driver {names} cannot be divided among CPUs",
    "numbered_clients": "its script uses :client_id, which each client process counts from 0",
    "one_profile": "a profile of statements comes from one client process",
    "parallel_free": "{names}: parallel workers run where the kernel puts them",
    "rate_free": "at a fixed rate CPUs are not the limit",
    "searched": "the search for the highest rate within the objective runs in one environment at a time",
    "sessions_end": "each transaction has a session of its own",
    "written_apart": "it writes, and what a slice wrote can be flushed before the next one on the client's machine "
    "only",
}
_OF_PLANS: Final = {
    "budget_blocks": "the budget of {seconds:duration} holds about {value:.0f} of {of:.0f} blocks: the run ends after "
    "the last whole block that fits",
    "few_blocks": "blocks = {value:.0f} allows no verdict, because an interval needs at least {of:.0f}; leave blocks "
    "out, and measuring stops once the question is answered",
    "run_unused": "run = {seconds:duration} has no effect on {names}: environments take turns in slices, and a visit "
    'measures each for {value:g} s. Write interleave = "runs" for full runs, which take much longer to a verdict',
    "budget_verdict": "the budget is too short for an interval, which needs at least {value:.0f} blocks: they take "
    "{seconds:duration}",
    "data_exceed memory": "{said}: data exceed the memory of the server ({of:bytes}) from scale {value:.0f} on",
    "data_exceed memory of some": "{said}: data exceed {of:bytes}, the memory of {names}, from scale {value:.0f} on",
    "data_exceed memory of some one scale": "{said}: data exceed {of:bytes}, the memory of {names}",
    "data_exceed memory one scale": "{said}: data exceed the memory of the server ({of:bytes})",
    "data_exceed shared_buffers": "{said}: data exceed shared_buffers ({of:bytes}) from scale {value:.0f} on",
    "data_exceed shared_buffers of some": "{said}: data exceed {of:bytes}, the shared_buffers of {names}, from scale "
    "{value:.0f} on",
    "data_exceed shared_buffers of some one scale": "{said}: data exceed {of:bytes}, the shared_buffers of {names}",
    "data_exceed shared_buffers one scale": "{said}: data exceed shared_buffers ({of:bytes})",
    "too_long": "{value:.0f} blocks, the fewest that give an interval, take {seconds:duration}, longer than "
    "{of:duration}; changes that shorten this follow, if there are any",
    "floor_ahead": "it was measured on {said}, which is in the future: check the clock",
    "floor_few": "it rests on {value:.0f} differences, and at least {of:.0f} are needed",
    "floor_few single": "it rests on 1 difference, and at least {of:.0f} are needed",
    "floor_host": _OF_HOSTS.format("{names} changed"),
    "floor_host and more": _OF_HOSTS.format("{names} and {value:.0f} more changed"),
    "floor_host client": _OF_HOSTS.format("the client is on another machine"),
    "floor_host other": _OF_HOSTS.format("it is another machine"),
    "floor_old": "it was measured on {said}, more than {value:.0f} days ago",
    "floor_outliers": "{value:.0f} of its {of:.0f} differences are outliers, which it does not describe",
    "floor_zero": "it is zero: most of its differences are exactly zero, which real noise never is",
    "offer": "with {names}, {value:.0f} blocks would take {seconds:duration}",
    "rising_load": 'order = "rising": in every visit fewer clients come first, so that load and time are confounded. '
    "What builds up during a visit looks like an effect of the load. Environments are still compared at the same load",
    "room_unknown": "{together}: free memory and disk space there are checked when the run starts",
}
_OF_NOTICES: Final = {
    "clone_left": "a clone could not be removed: {said}",
    "connection_broke": "the connection to {names} broke in {said}",
    "declared_values": "the values of this experiment are declared under [synthetic], not measured: its verdicts say "
    "nothing about speed",
    "emulated_host": "this machine is emulated by software ({said}): every run will be invalid, so there will be no "
    "verdict",
    "emulated_host other": "{names} is emulated by software ({said}): every run will be invalid, so there will be no "
    "verdict",
    "host_still_lost": "{names}: {said}",
    "ladder_ends": "throughput has fallen in every environment: {names} left out",
    "no_plans": "no plans of {names}: {said}",
    "preflight": "the preflight of {names}",
    "side_by_side": "environments are measured at the same time in {value:.0f} groups of machines that share nothing",
    "reconnected": "{names} is connected again: lost runs are repeated",
    "reconnecting": "connecting to {names} again in {seconds:g} s",
    "runs_needed all": "all of them are needed",
    "runs_needed at most": "a comparison stops once it is decided",
}
SAID: Final[Mapping[str, str]] = {**_OF_RUNS, **_OF_DESIGNS, **_OF_PLANS, **_OF_NOTICES}


def _render_time(seconds: float) -> str:
    """A plan that somebody damaged is shown, too."""
    return render_duration(seconds) if math.isfinite(seconds) else str(seconds)


_UNITS: Final[Mapping[str, Callable[[float], str]]] = {
    "bytes": render_bytes,
    "digits": render_digits,
    "duration": _render_time,
}


class _Figure(float):
    """A number that a sentence shows with its unit, or as numbers are shown."""

    def __format__(self, spec: str) -> str:
        return _UNITS[spec](self) if spec in _UNITS else super().__format__(spec)


def say_reason(reason: Reason) -> str:
    """The sentence; of a code of another version the code."""
    if reason.text:
        return reason.text
    case = f"{reason.code} {reason.how}" if reason.how else reason.code
    if case not in SAID:
        return reason.code
    return SAID[case].format(
        names=", ".join(reason.names),
        together=" and ".join(reason.names),
        facts="; ".join(reason.names),
        said=reason.said or "no reason given",
        more=f"; {reason.said}" if reason.said else "",
        value=_Figure(reason.value),
        of=_Figure(reason.of),
        share=reason.value / reason.of if reason.of else 0.0,
        seconds=_Figure(reason.seconds),
    )


_WARNINGS: Final = frozenset({"few_blocks", "run_unused", "budget_verdict", "too_long", "offer", RISING_LOAD})
"""Notes that are warnings: the plan will not answer, or not measure as the author expects."""


def say_warnings(plan: Plan) -> tuple[str, ...]:
    """Reasons why the plan may not answer its question."""
    return tuple(say_reason(note) for note in plan.notes if note.code in _WARNINGS)


def say_outgrown(plan: Plan) -> tuple[str, ...]:
    """From which scales on data are larger than shared_buffers and memory; nothing where all fit."""
    return tuple(_say_note(note, plan) for note in plan.notes if note.code == DATA_EXCEED)


def say_order(plan: Plan) -> tuple[str, ...]:
    """That load and time are confounded, where the author asked for a staircase."""
    return tuple(say_reason(note) for note in plan.notes if note.code == RISING_LOAD)


def say_notes(plan: Plan) -> tuple[str, ...]:
    """What was chosen for the experiment, and what is to be known of its plan."""
    return (*plan.experiment.notes, *(_say_note(note, plan) for note in plan.notes))


def _say_note(note: Reason, plan: Plan) -> str:
    """As `say_reason`, with environments called as they are everywhere."""
    if note.code != DATA_EXCEED:
        return say_reason(note)
    called = {each.name: name_environment(each, plan.experiment) for each in plan.experiment.environments}
    return say_reason(replace(note, names=tuple(called.get(name, name) for name in note.names)))


def say_placement(design: Design, environments: Sequence[Environment] = ()) -> str:
    """Where sessions ran, without a full stop; empty for studies that know nothing of it.

    Args:
        design: of the cell.
        environments: that may have a placement of their own.
    """
    pairs = {design.pairs(each) for each in environments} or {design.placement is Placement.PAIRED}
    if len(pairs) > 1:
        return "Sessions were paired with CPUs in some environments, and free in the others, as asked"
    if pairs == {True}:
        return (
            "Sessions were paired with CPUs: client and backend shared one, the same in all environments of a visit"
            + (
                "; the unlogged stretches ran free"
                if design.sliced
                else "; all figures are of paired sessions, free ones were not measured"
            )
        )
    if design.free_because is None:
        return ""
    return f"Sessions ran where the kernel put them: {say_reason(design.free_because)}"


def say_why_so(design: Design) -> str:
    """Why a cell is measured in its design; empty where nothing is known of it."""
    return "" if design.reason is None else say_reason(design.reason)
