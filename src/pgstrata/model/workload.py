"""What the clients do, described."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pgstrata.model.driver import DEFAULT_DRIVER
from pgstrata.model.experiment import Script


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What the clients do, described: which data, whether it writes, how large the data are.

    `data` names their kind: workloads of one kind share datasets. `builtin` is the name of a script that the driver
    brings, empty for custom scripts. `bytes_per_scale` is the size on disk per unit of scale, indexes included.
    `hot_row_per_scale`: every transaction updates one of `scale` rows. `options` have their defaults; where one of them
    is given, `script` runs with them as variables instead of the built-in one; without a built-in one it always runs.
    `reconnects`: each transaction has a connection of its own. `driver` is the key of its load generator. `choices` are
    all values that an option may have; an option without them takes any.
    """

    name: str
    title: str
    data: str
    writes: bool
    bytes_per_scale: int
    builtin: str = ""
    hot_row_per_scale: bool = False
    relations: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    script: Script | None = None
    reconnects: bool = False
    driver: str = DEFAULT_DRIVER
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
