"""When the load of a live server began to differ, and when it was as before. Pure."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from pgstrata.diagnosis.live.changes import throughput_of
from pgstrata.diagnosis.live.load import Cutting, load_of
from pgstrata.model.archive import ArchiveWindow, Span
from pgstrata.model.attribution import ValueInterval
from pgstrata.model.explanation import Onset
from pgstrata.stats.stretches import find_stretch

_SEED: Final = 1


def find_onset(whole: ArchiveWindow, window: Span, cutting: Cutting) -> Onset | None:
    """The stretch in which load or throughput differs, whichever shows it more clearly, where it overlaps the window.

    Args:
        whole: the window and what is around it.
        window: what the user asked about.
        cutting: as of the windows; its memory is that of the load without a change.
    """
    throughput = throughput_of(whole)
    seen = (np.asarray(whole.looks) > 0) & np.isfinite(throughput)
    block = max(1, math.ceil(cutting.memory / whole.cell))
    starts = [whole.span.begin + place * whole.cell for place, looked in enumerate(seen) if looked]

    def at(step: float) -> float:
        place = min(len(starts) - 1, max(0, math.floor(step)))
        return starts[place] + (step - place) * whole.cell

    stretches = [find_stretch(series[seen], block, _SEED) for series in (load_of(whole), throughput)]
    inside = [each for each in stretches if each and at(each.begin) < window.end and at(each.end) > window.begin]
    found = max(inside, key=lambda each: each.told, default=None)
    if found is None:
        return None
    begin, end = at(found.begin), at(found.end)
    return Onset(
        begin=begin,
        begin_interval=ValueInterval(low=at(found.begin_interval[0]), high=at(found.begin_interval[1])),
        end=end if found.ends else None,
        end_interval=ValueInterval(low=at(found.end_interval[0]), high=at(found.end_interval[1]))
        if found.ends
        else None,
    )
