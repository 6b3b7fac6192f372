"""What is not known of a statement's CPU: the kernel counts it and the run queue by process, not by statement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pgstrata.diagnosis.counting import Key
from pgstrata.model.attribution import Part
from pgstrata.stats.ranks import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How far a value may lie below and above of what is said, both >= 0, in its unit."""

    below: float
    above: float

    def less(self, other: Bounds) -> Bounds:
        """Of the difference of two."""
        return Bounds(below=self.below + other.above, above=self.above + other.below)


def bound(keys: Sequence[Key], values: FloatArray, rows: Sequence[int]) -> Bounds:
    """Of the sum of some rows of an account.

    Samples show in which statements sessions computed or queued for a CPU, not which of the two; queueing is shown as
    if it were divided like both. But sessions queue when they wake up, so that a statement which waits may have all of
    it and one that computes may have none. Whatever a statement's queue is, it is part of the samples of that statement
    and of all queueing. So a statement's CPU alone, or its queue alone, is known between bounds only (Manski, Partial
    Identification of Probability Distributions, 2003), while both together are known, and each over all statements as
    far as what lies in waits is CPU and queue in the ratio of both.

    Args:
        keys: of all rows of the account.
        values: seconds by row, shape (rows,).
        rows: which of them are summed.
    """
    cpu = {key[2]: values[row] for row, key in enumerate(keys) if key[0] is Part.CPU}
    queue = {key[2]: values[row] for row, key in enumerate(keys) if key[0] is Part.QUEUE}
    summed = {part: {keys[row][2] for row in rows if keys[row][0] is part} for part in (Part.CPU, Part.QUEUE)}
    below = above = 0.0
    for part, other in ((Part.CPU, Part.QUEUE), (Part.QUEUE, Part.CPU)):
        alone = [query for query in queue if query in summed[part] - summed[other]]
        if len(alone) in {0, len(queue)}:
            continue  # nothing to divide; rounding must not make a little of it
        shown, waited = sum(queue[query] for query in alone), sum(queue.values())
        within = sum(cpu[query] for query in alone) + shown
        most = min(waited, within)
        least = max(0.0, waited - (sum(cpu.values()) + waited - within))
        less, more = max(0.0, shown - least), max(0.0, most - shown)
        below += more if part is Part.CPU else less
        above += less if part is Part.CPU else more
    return Bounds(below=below, above=above)
