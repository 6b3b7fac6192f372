"""The plan: designs, blocks, forecast, refusals put together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pgstrata.model.driver import Capabilities
from pgstrata.model.experiment import Experiment, HostSpec, Interleave, Order
from pgstrata.model.floor import Floor
from pgstrata.model.plan import HORIZON, Design, HostCapacity, Plan
from pgstrata.model.reasons import RISING_LOAD, Reason
from pgstrata.model.workload import Workload
from pgstrata.plan.design import choose_designs
from pgstrata.plan.forecast import budget_notes, forecast, verdict_notes
from pgstrata.plan.identity import identify
from pgstrata.plan.offers import offer_notes
from pgstrata.plan.order import lay_out
from pgstrata.plan.outgrown import outgrown_notes
from pgstrata.plan.refusals import refuse, refuse_drivers, refuse_size


def make_plan(
    experiment: Experiment,
    workloads: Mapping[str, Workload],
    capacity: HostCapacity,
    *,
    drivers: Mapping[str, Capabilities],
    interleave: Interleave | None = None,
    designs: Sequence[Design] | None = None,
    floors: Mapping[str, Floor] | None = None,
    say: Callable[[Reason], str] = str,
) -> Plan:
    """Everything that will be done, in order.

    Args:
        experiment: complete: with the settings that were chosen for it.
        workloads: the workloads that exist, by name.
        capacity: the machine that it must fit into.
        drivers: what each load generator can do, by key.
        interleave: instead of the experiment's.
        designs: one for each cell, in order, instead of those that would be chosen.
        floors: noise floors of this host by cell identity, frozen with the plan.
        say: words why a cell cannot be measured in slices, for refusals.

    Raises:
        PlanRefusedError: the plan would not answer the question, or does not fit; with all reasons.
    """
    refuse_size(experiment)
    refuse_drivers(experiment, workloads, drivers)
    wanted, chosen = interleave or experiment.interleave, designs
    if designs is None:
        designs = choose_designs(experiment, workloads, capacity, drivers, wanted)
    cost = forecast(experiment, workloads, designs)
    here = experiment.on_host(HostSpec())
    cost_here = forecast(here, workloads, designs) if here.environments else None
    refuse(experiment, workloads, capacity, drivers, cost_here, designs, say)
    asked = replace(experiment, interleave=wanted)
    offers = offer_notes(asked, workloads, capacity, drivers, cost) if chosen is None else ()
    return Plan(
        identity=identify(experiment, designs),
        experiment=experiment,
        designs=tuple(designs),
        blocks=tuple(lay_out(experiment, designs, number) for number in range(1, experiment.blocks + 1)),
        forecast=cost,
        floors=dict(floors or {}),
        horizon=HORIZON,
        notes=(
            *verdict_notes(experiment, designs),
            *_order_notes(experiment),
            *budget_notes(experiment, cost),
            *offers,
            *outgrown_notes(experiment, workloads, capacity),
            *_host_notes(experiment),
        ),
    )


def _order_notes(experiment: Experiment) -> tuple[Reason, ...]:
    several = len({cell.clients for cell in experiment.cells}) > 1
    return (Reason(code=RISING_LOAD),) if several and experiment.order is Order.RISING else ()


def _host_notes(experiment: Experiment) -> tuple[Reason, ...]:
    """What is not known of other machines before they are opened for a run."""
    unknown = tuple(host.text for host in experiment.hosts if host.remote)
    return (Reason(code="room_unknown", names=unknown),) if unknown else ()
