"""Scales as tiers: data as a multiple of shared_buffers or of the limit on memory, resolved to a scale of the workload.

The baseline's level counts, and the scale is the same in all environments: differences between them are then not
differences of their data.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pgstrata.experiment.keys import WrongValueError
from pgstrata.experiment.values import Kind, count, one_or_list
from pgstrata.model.experiment import Environment
from pgstrata.model.workload import DataKind
from pgstrata.units import parse_setting_bytes, render_bytes

_MOST: Final = 2**31 - 1
_MOST_TIMES: Final = 1000.0
_BUFFER: Final = 8192
_BUFFERS: Final = "shared_buffers"
_LIMIT: Final = "memory limit"
_WRITTEN: Final = re.compile(rf"(\d+(?:\.\d+)?)\s*[×x*]\s*({_BUFFERS}|{_LIMIT})", re.ASCII)
_NUMBER: Final = count("scale", 1, _MOST)
_LONGEST: Final = 40
_OR_NUMBER: Final = "or give the scale as an integer"
_REMEDY: Final = f'write "0.5 × {_BUFFERS}" or "1.5 × {_LIMIT}", {_OR_NUMBER} without quotes'


@dataclass(frozen=True, slots=True)
class Tier:
    """A size of data: `times` whatever `of` is, "shared_buffers" or "memory limit"; as it was written."""

    times: float
    of: str
    text: str = field(compare=False)

    def __str__(self) -> str:
        return repr(self.text)


def _read_scale(value: Any) -> int | Tier:
    """An integer, or a tier such as "0.5 × shared_buffers"."""
    if not isinstance(value, str):
        return _NUMBER.read(value)
    match = _WRITTEN.fullmatch(value.strip())
    if match is None:
        raise WrongValueError(f"{value[:_LONGEST]!r} is not a size of data", _REMEDY)
    times = float(match[1])
    if not 0 < times <= _MOST_TIMES:
        raise WrongValueError(
            f"data cannot be {match[1][:_LONGEST]} × {match[2]}", f"write a factor above 0, up to {_MOST_TIMES:g}"
        )
    return Tier(times, match[2], value.strip())


_PATTERN: Final = rf"^\s*\d+(\.\d+)?\s*[×x*]\s*({_BUFFERS}|{_LIMIT})\s*$"
_SCHEMA: Final = {"anyOf": [_NUMBER.schema, {"type": "string", "pattern": _PATTERN}]}
SCALE: Final = one_or_list("scale", Kind(_read_scale, _SCHEMA), "integer or tier")


def resolve_scale(tier: Tier, data: DataKind, baseline: Environment) -> tuple[int, int]:
    """The scale of a tier, and the bytes that the tier is a multiple of.

    It is rounded to the side on which the author asked for it: down up to 1 ×, so that data which should fit do, and up
    beyond. The size of data is their forecast (`DataKind.size`), without the catalogues of the cluster.

    Args:
        tier: as written.
        data: of the workload.
        baseline: what it says of shared_buffers and limits.memory counts.

    Raises:
        WrongValueError: the baseline does not say how large it is, or no scale of the workload is that large.
    """
    reference = _BYTES[tier.of](baseline)
    units = (tier.times * reference - data.fixed_bytes) / data.bytes_per_scale
    scale = math.floor(units) if tier.times <= 1 else math.ceil(units)
    asked = f"{tier.text!r} is {render_bytes(tier.times * reference)}"
    if scale < 1:
        what = f"{asked}, and the smallest data of {data.name} take {render_bytes(data.size(1))}"
        raise WrongValueError(what, f"write a larger factor, {_OR_NUMBER}")
    if scale > _MOST:
        raise WrongValueError(f"{asked}: a scale of {scale:,} is too large", f"write a smaller factor, {_OR_NUMBER}")
    return scale, reference


def _buffers(baseline: Environment) -> int:
    written = baseline.settings.get(_BUFFERS)
    if written is None:
        what = f"{_BUFFERS} of the baseline {baseline.name} is not known: the file does not set it"
        raise WrongValueError(what, f'write {_BUFFERS} = "4GB" below [common.settings], {_OR_NUMBER}')
    try:
        return parse_setting_bytes(written, _BUFFER)
    except ValueError:
        what = f"{_BUFFERS} of the baseline {baseline.name} is not a size: {written[:_LONGEST]!r}"
        raise WrongValueError(what, f'write a size such as {_BUFFERS} = "4GB"') from None


def _limit(baseline: Environment) -> int:
    written = baseline.layers.get("limits.memory")
    if written is None:
        what = f"the baseline {baseline.name} has no memory limit"
        raise WrongValueError(what, f'write limits.memory = "8GB" below [common] or [factors], {_OR_NUMBER}')
    return int(written)


_BYTES: Final[Mapping[str, Callable[[Environment], int]]] = {_BUFFERS: _buffers, _LIMIT: _limit}
