"""Pure: the values of an experiment with declared values. No clock and no counter has a part in them."""

from __future__ import annotations

import hashlib
import math
from statistics import NormalDist
from typing import Final

from pgstrata.model.boot import release_key
from pgstrata.model.metrics import SYNTHETIC, Measurement
from pgstrata.model.synthetic import Synthetic
from pgstrata.ports.store import RunHeader

KERNEL: Final = "kernel"
"""Fact of a run: the release of the kernel that the server's machine was found running."""
_VALUE: Final = 1000.0
_DRAWS: Final = 1 << 53


def declared_values(rule: Synthetic, header: RunHeader) -> tuple[Measurement, ...]:
    """The declared value of a run; none where its kernel is not known, or the run failed."""
    release = header.facts.get(KERNEL, "")
    if header.failure or not release:
        return ()
    factor = rule.factor if release_key(release) >= release_key(rule.kernel) else 1.0
    value = _VALUE * factor * math.exp(rule.scatter * _draw(f"{header.plan}/{header.identity}"))
    return (Measurement(metric=SYNTHETIC.name, value=value),)


def _draw(seed: str) -> float:
    """A number of the standard normal distribution, the same whenever it is drawn for a run."""
    number = int.from_bytes(hashlib.sha256(seed.encode()).digest()) % _DRAWS
    return NormalDist().inv_cdf((number + 0.5) / _DRAWS)
