"""What a load generator can do, as far as a plan depends on it."""

from dataclasses import dataclass
from typing import Final

DEFAULT_DRIVER: Final = "pgbench"
"""Key of the driver of cells that name none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a driver can do.

    `pausable`: its clients bear being stopped and continued, and it counts by slice, so that environments can take
    turns in slices. `transaction_log`: it can write down the latency of each transaction. `fixed_rate`: it can begin
    transactions at a rate; `whole_rates`: at whole numbers per second only. `skips_late`: it knows a limit of latency,
    and skips transactions that come too late at a fixed rate. `scripts`: it runs scripts of the author's own.
    `loads_data`: it makes the data of its workloads itself. `placeable`: several processes can share the clients of a
    load, so that each client can be put on a CPU together with its backend. `shares_threads`: one thread can serve
    several clients; otherwise each has its own. `profile`: it can tell the latency of each statement.
    `protocols`: those of `Protocol` that it speaks.
    """

    pausable: bool
    transaction_log: bool
    fixed_rate: bool
    scripts: bool
    loads_data: bool
    placeable: bool = False
    whole_rates: bool = False
    skips_late: bool = False
    shares_threads: bool = True
    profile: bool = True
    protocols: tuple[str, ...] = ("simple", "extended", "prepared")
