"""What a load generator can do, as far as a plan depends on it."""

from dataclasses import dataclass
from typing import Final

DEFAULT_DRIVER: Final = "pgbench"
"""Key of the driver of cells that name none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a driver can do.

    `pausable`: its clients bear being stopped and continued, so that environments can take turns in slices.
    `transaction_log`: it can write down the latency of each transaction. `fixed_rate`: it can begin transactions at a
    rate, and skip those that come too late. `scripts`: it runs scripts of the author's own. `loads_data`: it makes the
    data of its workloads itself. `placeable`: several processes can share the clients of a load, so that each client
    can be put on a CPU together with its backend.
    """

    pausable: bool
    transaction_log: bool
    fixed_rate: bool
    scripts: bool
    loads_data: bool
    placeable: bool = False
