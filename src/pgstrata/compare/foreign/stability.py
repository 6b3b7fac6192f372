"""Whether one percentage can describe the block differences of a table at all."""

from __future__ import annotations

import math

from pgstrata.model.answer import ResultWarning
from pgstrata.stats.anomaly import Stability


def say_instability(found: Stability, environment: str, baseline: str) -> ResultWarning:
    """Two groups, or too many that lie apart."""
    if found.modes is not None:
        share = found.modes.share_high
        larger = max(share, 1 - share)
        text = (
            f"the blocks of {environment} against {baseline} fall into two groups of {larger * 100:.0f} and "
            f"{(1 - larger) * 100:.0f} %: look for what differs between them"
        )
    else:
        text = (
            f"{found.rate * 100:.0f} % of the blocks of {environment} against {baseline} lie more than "
            f"{math.expm1(found.limit) * 100:.0f} % from their median"
        )
    return ResultWarning(code="unstable", text=text)
