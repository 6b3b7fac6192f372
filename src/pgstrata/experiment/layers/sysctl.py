"""Parameters of the kernel, whose names are its own."""

from typing import Final

from pgstrata.experiment.layers.declaration import FactorKey, Layer, LayerKey, level_text
from pgstrata.experiment.needs import HostLine, writable
from pgstrata.experiment.values import TABLE, Scalar


def _read_parameter(value: Scalar) -> str:
    if isinstance(value, bool):
        return "1" if value else "0"
    return " ".join(level_text(value).split())


SYSCTL: Final = Layer(
    factors={
        "sysctl": FactorKey(
            kind=TABLE,
            meaning="Kernel parameters by name, as sysctl -a writes them.",
            wrong="{ swappiness = 1 }",
            wrong_levels='{ "vm/../x" = [1] }',
        )
    },
    keys={"sysctl.*": LayerKey(_read_parameter, "a kernel parameter as `sysctl -a` writes it")},
    host=(HostLine(key="sysctl.*", needs=(writable("/proc/sys"),)),),
)
