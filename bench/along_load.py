"""Simulated block differences that begin at a load: how often they are named there, how often none where none is."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

import numpy as np
from figures import Figure

from pgstrata.stats.ordered import find_steps

STUDIES: Final = 100
LOADS: Final = 8
BLOCKS: Final = 9
# Of the difference of two runs of a cell, in log units, as on a quiet and on a shared machine.
SCATTER: Final = (0.015, 0.03)


def measure_along_load() -> Iterator[Figure]:
    """For two scatters a slowdown of 6 % that begins at a load drawn at random, and none."""
    for sd in SCATTER:
        rng = np.random.default_rng([7, round(1000 * sd)])
        right = none = 0
        for _ in range(STUDIES):
            place = int(rng.integers(2, LOADS - 1))
            d = rng.normal(0, sd, (BLOCKS, LOADS))
            none += not find_steps(d, draws=999).steps
            d[:, place:] += math.log(0.94)
            right += [step.after for step in find_steps(d, draws=999).steps] == [place]
        name = f"along the load, differences scattering by {100 * sd:g} %"
        notes = [f"{STUDIES} studies of {BLOCKS} blocks and {LOADS} numbers of clients; 6 % slower from one of them on"]
        yield Figure(name=f"{name}: named at its step", value=right, goal=90, unit="%", low_is_good=False, notes=notes)
        yield Figure(name=f"{name}: none found where none is", value=none, goal=95, unit="%", low_is_good=False)
