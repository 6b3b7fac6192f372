"""Environments that are up together take turns: persistent clients, paused and resumed by signals to their groups.

The turns themselves are a script on the client's host, so that neither this process nor a slow connection is in their
timing; it writes down when each slice began and ended, and the client's own log says what was done in between.
"""

from __future__ import annotations

import random
import secrets
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from pgstrata.conduct.arm import ActiveArm, clear_scratch, fresh_folder, guarded, make_load, scratch_folder, together
from pgstrata.conduct.finish import now
from pgstrata.conduct.placement import place_backends, place_clients
from pgstrata.conduct.rig import Rig
from pgstrata.conduct.run import capture_after, capture_before, check_data, quiesce
from pgstrata.conduct.samplers import AtWork, kill_samplers, share_watchers, start_samplers, stop_samplers
from pgstrata.errors import HostLostError
from pgstrata.model.plan import Design, Plan
from pgstrata.plan.design import LEAD_SECONDS
from pgstrata.plan.order import derive_seed
from pgstrata.ports.clients import ClientProcesses
from pgstrata.ports.collector import Collector
from pgstrata.ports.events import Event, EventKind
from pgstrata.ports.host import Command, Host, Process, StopSignal
from pgstrata.ports.server import RunningServer
from pgstrata.ports.steps import Steps

# Longer than any visit: clients are ended by a signal when the turns are over.
_UNTIL_ENDED: Final = 7 * 24 * 3600.0
_END_TIMEOUT: Final = 60.0
_GRACE: Final = 60.0
_POLL: Final = 0.5
_POLL_AT_END: Final = 0.02
_NANOSECONDS: Final = 1e9
MARKS: Final = "slices.marks"
"""Evidence name of what the turns' script wrote down."""
# A slice that the host could not end in time is none: the script's own clock says so.
_TURN: Final = """\
turn() {
  begun=$(date +%s%N)
  kill -s CONT -- $3 2>/dev/null || kill -0 -- "${3%% *}" 2>/dev/null || return 0
  sleep "$4"
  kill -s STOP -- $3 2>/dev/null
  ended=$(date +%s%N)
  [ -z "$5" ] || sync -f "$5" ${6:+"$6"}
  printf '%s %s %s %s\\n' "$1" "$2" "$begun" "$ended"
}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One slice to be made: its round, 0 for those that are thrown away, and the place of its arm."""

    round: int
    arm: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One slice that was made; wall clock of the client's host in nanoseconds."""

    round: int
    arm: int
    start: int
    stop: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Clients:
    """Clients by the place of their arm, what is paused with them, and the folders to be written back after slices."""

    processes: Mapping[int, ClientProcesses]
    beside: Mapping[int, Sequence[Process]]
    folders: Mapping[int, Sequence[str]]


def order_turns(design: Design, arms: int, seed: int) -> tuple[Turn, ...]:
    """Every arm once in each round, each round in a fresh random order."""
    source = random.Random(seed)  # noqa: S311 - an order, not a secret
    turns: list[Turn] = []
    for number in range(-design.discarded, design.rounds):
        order = list(range(arms))
        source.shuffle(order)
        turns += (Turn(round=max(0, number + 1), arm=arm) for arm in order)
    return tuple(turns)


def render_script(
    turns: Sequence[Turn],
    groups: Mapping[int, Sequence[int]],
    seconds: float,
    folders: Mapping[int, Sequence[str]] | None = None,
) -> bytes:
    """The turns as a POSIX script.

    Args:
        turns: in their order.
        groups: process groups of each arm, those of its client first.
        seconds: length of a slice.
        folders: what is to be written back after each slice of an arm; None where nothing is written.
    """
    calls = (
        f"turn {turn.round} {turn.arm} '{' '.join(f'-{group}' for group in groups[turn.arm])}' {seconds:g} "
        f"{shlex.join((folders or {}).get(turn.arm) or ('',))}"
        for turn in turns
    )
    return (_TURN + "\n".join(calls) + "\n").encode()


def parse_marks(text: bytes) -> tuple[Mark, ...]:
    """The script's lines; a last one without its end is left out."""
    whole = text[: text.rfind(b"\n") + 1].decode("ascii", "replace")
    rows = [[int(word) for word in line.split()] for line in whole.splitlines()]
    return tuple(Mark(round=row[0], arm=row[1], start=row[2], stop=row[3]) for row in rows)


def take_turns(rig: Rig, plan: Plan, arms: Sequence[ActiveArm], up: Mapping[str, RunningServer]) -> None:
    """Measure all arms of a stage in slices; failures of one arm are recorded in it, the others go on.

    Raises:
        HostLostError: the turns did not come to their end.
    """
    design = plan.design(arms[0].cell.identity)
    quiesce(rig, arms, lambda arm: (up[arm.planned.identity],))
    clients: dict[int, ClientProcesses] = {}
    works: dict[int, AtWork] = {}
    # Servers report what their sessions did only now and then, and for sure when these end: those counters are read
    # before the clients come and after they have gone. Those of processes look at them while they are there.
    around, inside = _collectors(rig, with_clients=False), _collectors(rig, with_clients=True)
    try:
        for _, arm in _sound(arms):
            guarded(arm, partial(capture_before, rig, arm, rig.subject(up[arm.planned.identity]), around))
        _lead(rig, arms, up, clients)
        token = secrets.token_hex(4)
        for number, arm in _sound(arms):
            arm.together = token
            arm.client_pids = clients[number].pids
            _note_others(arm, number, arms, clients, up)
            guarded(arm, partial(capture_before, rig, arm, rig.subject(up[arm.planned.identity]), inside))
        for number, arm in _sound(arms):
            works[number] = start_samplers(rig, arm, up[arm.planned.identity], turns=True)
            for process in works[number].paused:
                process.signal(StopSignal.STOP, group=True)
        if _sound(arms):
            _measure(rig, plan, arms, clients, up, works, design)
        for _, arm in _sound(arms):
            if rig.control_alive(up[arm.planned.identity]):
                capture_after(rig, arm, rig.subject(up[arm.planned.identity]), around)
                check_data(rig, arm, up[arm.planned.identity])
    finally:
        # a server's host that was lost keeps no client; on a client's that was lost everything ends by itself
        for client in clients.values():
            with suppress(HostLostError):
                client.signal(StopSignal.KILL, group=True)
        kill_samplers(tuple(works.values()))


def _collectors(rig: Rig, *, with_clients: bool) -> tuple[Collector, ...]:
    return tuple(collector for collector in rig.collectors if collector.with_clients is with_clients)


def _sound(arms: Sequence[ActiveArm]) -> list[tuple[int, ActiveArm]]:
    """Arms in which nothing has failed so far, with their places."""
    return [(number, arm) for number, arm in enumerate(arms) if not arm.failure]


def _measure(
    rig: Rig, plan: Plan, arms: Sequence[ActiveArm], clients: Mapping[int, ClientProcesses],
    up: Mapping[str, RunningServer], works: Mapping[int, AtWork], design: Design,
) -> None:  # fmt: skip
    planned = arms[0].planned
    seed = derive_seed(plan.experiment.seed, planned.block, planned.cell, "rounds")
    places = [number for number, _ in _sound(arms)]
    turns = [turn for turn in order_turns(design, len(arms), seed) if turn.arm in places]
    taking = {number: arms[number] for number in places}
    folders = {number: up[arms[number].planned.identity].clone.folders for number in places if design.settle}
    beside = {number: works[number].paused for number in places}
    _follow_turns(rig, taking, turns, _Clients(processes=clients, beside=beside, folders=folders), design)
    for number in reversed(places):
        server = up[arms[number].planned.identity]
        if rig.control_alive(server):
            capture_after(rig, arms[number], rig.subject(server), _collectors(rig, with_clients=True))
    for number in places:
        # while the clients are still there: the last look at their sessions' processes
        stop_samplers(rig, arms[number], works[number])
    share_watchers([arms[number] for number in places])
    numbers = {arms[number].planned.identity: number for number in places}

    def collecting(arm: ActiveArm) -> Steps[None]:
        number = numbers[arm.planned.identity]
        return _collecting(rig, arm, number, clients[number])

    together(rig, [arms[number] for number in places], "count", collecting)


def _note_others(
    arm: ActiveArm,
    number: int,
    arms: Sequence[ActiveArm],
    clients: Mapping[int, ClientProcesses],
    up: Mapping[str, RunningServer],
) -> None:
    """Processes of the environments that an arm takes turns with; their servers are all on one host."""
    others = [place for place in clients if place != number]
    servers = (up[arms[place].planned.identity].postmaster_pid for place in others)
    theirs = tuple(pid for place in others for pid in clients[place].pids)
    apart = arm.environment.apart
    arm.resident_pids = (*(() if apart else theirs), *(pid for pid in servers if pid is not None))
    arm.client_resident_pids = theirs if apart else ()


def _lead(
    rig: Rig, arms: Sequence[ActiveArm], up: Mapping[str, RunningServer], clients: dict[int, ClientProcesses]
) -> None:
    """Clients of all arms that have connected, done their first transactions side by side, and wait."""
    numbers = {arm.planned.identity: number for number, arm in enumerate(arms)}

    def leading(arm: ActiveArm) -> Steps[None]:
        identity = arm.planned.identity
        return _leading(rig, arm, up[identity], clients, numbers[identity])

    together(rig, arms, "lead", leading)


def _leading(
    rig: Rig, arm: ActiveArm, server: RunningServer, clients: dict[int, ClientProcesses], number: int
) -> Steps[None]:
    arm.sampling_rate = 1.0
    load = make_load(rig, arm, server, seconds=_UNTIL_ENDED, seed=arm.planned.seed)
    folder = fresh_folder(rig, arm, "run")
    logged = place_clients(rig, arm, replace(load, sampling_rate=1.0, progress=None))
    yield
    begun = rig.clock.monotonic()
    client = clients[number] = rig.driver(arm.environment, arm.cell).start(
        logged, folder, on_parent_death=StopSignal.KILL
    )
    try:
        yield
        place_backends(rig, arm, logged)
        yield
        rig.clock.sleep(max(0.0, LEAD_SECONDS - (rig.clock.monotonic() - begun)))
        yield
        client.signal(StopSignal.STOP, group=True)
    except BaseException:
        # it would run on beside the others' slices
        client.signal(StopSignal.KILL, group=True)
        raise


def _follow_turns(
    rig: Rig, arms: Mapping[int, ActiveArm], turns: Sequence[Turn], clients: _Clients, design: Design
) -> None:
    """Let the script run to its end, telling the rounds; what it wrote down goes to every arm."""
    first = next(iter(arms.values()))
    host, folder = rig.client(first.environment), scratch_folder(rig, first)
    script, output = f"{folder}/turns.sh", f"{folder}/turns.txt"
    groups = {
        number: (*client.pids, *(process.pid for process in clients.beside.get(number, ())))
        for number, client in clients.processes.items()
    }
    host.write(script, render_script(turns, groups, design.slice_seconds, clients.folders))
    for arm in arms.values():
        arm.started = now(rig)
    before = host.clock()
    process = host.spawn(
        Command(argv=("sh", script)), stdout=output, stderr=f"{folder}/turns.err", on_parent_death=StopSignal.KILL
    )
    try:
        _await_turns(rig, first, process, output, len(turns) * design.slice_seconds, design)
    finally:
        process.signal(StopSignal.KILL, group=True)
    after = host.clock()
    text = host.read(output)
    marks = parse_marks(text)
    for number, arm in arms.items():
        own = [mark for mark in marks if mark.arm == number]
        arm.files[MARKS] = text
        arm.seconds = sum(mark.stop - mark.start for mark in own) / _NANOSECONDS
        arm.wall_drift = (after.wall - before.wall) - (after.monotonic - before.monotonic)
        if not any(mark.round > 0 for mark in own):
            arm.fail("", how="no turn")


def _await_turns(rig: Rig, arm: ActiveArm, process: Process, output: str, expected: float, design: Design) -> None:
    rig.events.emit(Event(kind=EventKind.STEP, run=arm.planned.identity, text="measure"))
    begun = rig.clock.monotonic()
    told = 0
    while process.poll() is None:
        passed = rig.clock.monotonic() - begun
        if passed > 2 * expected + _GRACE:
            raise HostLostError(
                f"the turns of {arm.planned.identity} did not end in time",
                where=rig.client(arm.environment).name,
                remedy="check whether the host is overloaded, or date, kill or sleep hang there",
            )
        rig.clock.sleep(_POLL if expected - passed > _POLL else _POLL_AT_END)
        done = max((mark.round for mark in parse_marks(_read(rig.client(arm.environment), output))), default=0)
        if done > told:
            told = done
            text = f"round {done} of {design.rounds}"
            rig.events.emit(Event(kind=EventKind.PROGRESS, run=arm.planned.identity, text=text))


def _read(host: Host, path: str) -> bytes:
    return host.read_files((path,)).get(path, b"")


def _collecting(rig: Rig, arm: ActiveArm, number: int, client: ClientProcesses) -> Steps[None]:
    """End a client, and take what it leaves; its log is counted, not kept."""
    driver = rig.driver(arm.environment, arm.cell)
    driver.end(client)
    yield
    try:
        client.wait(_END_TIMEOUT)
    except TimeoutError:
        client.signal(StopSignal.KILL, group=True)
        with suppress(TimeoutError):
            client.wait(_END_TIMEOUT)
        arm.fail("", how="deaf", seconds=_END_TIMEOUT)
    folder, marks = scratch_folder(rig, arm, "run"), f"{scratch_folder(rig, arm)}/marks.txt"
    rig.client(arm.environment).write(marks, arm.files[MARKS])
    arm.files.update((yield from driver.counting(folder, marks, number)))
    arm.files.update(driver.collect(folder))
    clear_scratch(rig, arm)
