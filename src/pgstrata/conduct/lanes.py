"""What can be done side by side: works on machines that share nothing, each group of which is a lane."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TypeVar

from pgstrata.conduct.rig import Rig
from pgstrata.errors import HostLostError
from pgstrata.model.experiment import Environment, HostSpec
from pgstrata.model.plan import Plan, Visit
from pgstrata.plan.load import own_image

T = TypeVar("T")


def machines_of_environment(environment: Environment) -> frozenset[HostSpec]:
    """The machines of its server and clients."""
    return frozenset((environment.host, *environment.client_hosts))


def machines_of(plan: Plan, *visits: Visit) -> frozenset[HostSpec]:
    """The machines of the servers and clients of visits."""
    residents = (plan.experiment.environment(name) for visit in visits for name in visit.residents)
    return frozenset[HostSpec]().union(*map(machines_of_environment, residents))


def environments_by_lane(rig: Rig, plan: Plan) -> Mapping[str, int]:
    """The lane of each environment, from 0, by name."""
    lanes = lanes_of(rig, plan, plan.experiment.environments, machines_of_environment)
    return {each.name: number for number, lane in enumerate(lanes) for each in lane}


def follow_lanes(
    rig: Rig,
    plan: Plan,
    items: Sequence[T],
    machines: Callable[[T], Collection[HostSpec]],
    action: Callable[[T, Collection[HostSpec]], None],
) -> None:
    """Do something for each item: in their order in each lane, and the lanes side by side.

    If one fails, nothing further is begun in the others.

    Args:
        rig: whose lanes they are.
        plan: of which the items are.
        items: such as visits.
        machines: those that an item needs.
        action: is given an item, and the machines that it may use: those of its lane, or all if there is but one.

    Raises:
        BaseException: as the action, in the first lane in which it failed.
    """
    lanes = lanes_of(rig, plan, items, machines)
    used = [frozenset(spec for item in lane for spec in machines(item)) for lane in lanes]
    failed = False

    def follow(number: int) -> None:
        nonlocal failed
        own = used[number] if len(lanes) > 1 else frozenset(plan.experiment.elsewhere)
        try:
            for item in lanes[number]:
                if not failed:
                    action(item, own)
        except BaseException:
            failed = True
            raise

    rig.lanes([partial(follow, number) for number in range(len(lanes))])


def lanes_of(
    rig: Rig, plan: Plan, items: Sequence[T], machines: Callable[[T], Collection[HostSpec]]
) -> Sequence[Sequence[T]]:
    """Items by lane, in their order in each.

    Items that need one machine, or machines with one kernel, are in one lane. All are in one where a machine is lost,
    and where environments have image files: these are as large as the data of all need, and the others are asked for
    it.
    """
    specs = {spec for item in items for spec in machines(item) if spec.remote}
    if not specs or any(own_image(each) for each in plan.experiment.environments):
        return [items] if items else []
    try:
        kernels = {spec: rig.targets[spec].kernel() for spec in specs}
    except HostLostError:
        return [items]
    lanes: list[tuple[set[str], list[int]]] = []
    for place, item in enumerate(items):
        own = {kernels.get(spec, "") for spec in machines(item)}
        joined = [lane for lane in lanes if lane[0] & own]
        lanes = [lane for lane in lanes if lane not in joined]
        members = [*(each for _, places in joined for each in places), place]
        lanes.append((own.union(*(used for used, _ in joined)), members))
    return [[items[place] for place in places] for places in sorted(sorted(places) for _, places in lanes)]
