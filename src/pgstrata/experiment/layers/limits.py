"""Limits around the server: memory with its page cache counted, and traffic of its disk."""

from collections.abc import Callable
from functools import partial
from typing import Final

from pgstrata.experiment.keys import WrongValueError
from pgstrata.experiment.layers.declaration import FactorKey, Layer, LayerKey, Together, level_text, size
from pgstrata.experiment.needs import group_line
from pgstrata.experiment.values import TABLE, Scalar

_THROTTLING: Final = "CONFIG_BLK_DEV_THROTTLING"


def _read_operations(value: Scalar) -> str:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        what = f"{level_text(value)!r} is not a valid number of operations"
        raise WrongValueError(what, "write a whole number per second: 500")
    return str(value)


_key: Final[Callable[..., LayerKey]] = partial(LayerKey, together=Together.FOR_ONE)
LIMITS: Final = Layer(
    factors={
        "limits": FactorKey(
            kind=TABLE,
            meaning="Around the server: memory; read_bytes, write_bytes, read_operations, write_operations per second.",
            wrong='{ read_operations = "many" }',
            wrong_levels='{ memory = ["4 gigs"] }',
        )
    },
    keys={
        "limits.memory": _key(size(16 * 1024**2), "a size: memory around the server, page cache counted"),
        "limits.read_bytes": _key(size(4096), 'a size per second, such as `"100MB"`'),
        "limits.write_bytes": _key(
            size(4096), "the same for writes; refused with cgroup version 1, where buffered writes escape"
        ),
        "limits.read_operations": _key(_read_operations, "a number per second"),
        "limits.write_operations": _key(_read_operations, "the same for writes"),
    },
    host=(
        group_line("limits.memory", "memory", "CONFIG_MEMCG"),
        group_line("limits.read_*", "io", _THROTTLING, old="blkio"),
        group_line("limits.write_*", "io", _THROTTLING, old="blkio", since=2),
    ),
)
