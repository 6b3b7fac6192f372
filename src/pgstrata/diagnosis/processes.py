"""What the server's processes that serve no client were seen doing, per transaction: beside the account, not in it."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from pgstrata.diagnosis.account import FEWEST_SAMPLES, Seen
from pgstrata.model.activity import ProcessCount, SessionState
from pgstrata.model.attribution import Contribution, Part, ValueInterval
from pgstrata.stats.moderated import resolve_holm
from pgstrata.stats.ranks import FloatArray
from pgstrata.stats.student import two_sided_point, two_sided_tail

LEVEL: Final = 0.05
_IDLE: Final = frozenset({"Client", "Extension"})
_Doing = tuple[str, Part, str]
"""Kind of process, part and event."""


def contribute_processes(value: Sequence[Seen], reference: Sequence[Seen]) -> tuple[Contribution, ...]:
    """What processes did in the environment and in the reference, the largest difference first.

    Their time is told by that of the clients: of a transaction's time T the share that their samples are of those of
    sessions, so that two workers that compute all the time have T x 2 / clients. Whether they were on a CPU or ready
    for one is not asked. Blocks have the same weights as those of an account (`attribution.attribute`), intervals are
    those of 95 % for each row alone (Student's t over the blocks, with a variance not below that of the counts: what
    works in the background comes in bursts), and rows are resolved by Holm's procedure over all of them. What waits for
    a client or in an extension's loop has nothing to do, and is left out. What was seen fewer than `FEWEST_SAMPLES`
    times in both together is put together by kind, or left out.

    Args:
        value: the environment's windows, one for each block, at least two, each with samples of sessions.
        reference: the reference's, of the same blocks in the same order.
    """
    sides = [[_count(seen) for seen in side] for side in (value, reference)]
    shown = _fold(sum((counted for side in sides for counted in side), Counter()))
    names = tuple(dict.fromkeys(name for name in shown.values() if name is not None))
    if not names:
        return ()
    counts = np.array([[list(_collect(counted, shown, names)) for counted in side] for side in sides], dtype=np.float64)
    seconds = np.array([[seen.seconds for seen in side] for side in (value, reference)])
    sizes = np.array([[seen.samples for seen in side] for side in (value, reference)])
    weights = 1 / np.sqrt(seconds.prod(axis=0))
    each = seconds / sizes * weights / weights.mean()  # seconds that one sample stands for, shape (sides, blocks)
    times = counts * each[:, :, np.newaxis]
    # of counts as rare as these the variance is their mean, which all blocks of a side tell together
    counting = (each**2).mean(axis=1) @ counts.mean(axis=1)
    return _judge(names, times, counting, counts.sum(axis=(0, 1)))


def _judge(
    names: Sequence[_Doing], times: FloatArray, counting: FloatArray, samples: FloatArray
) -> tuple[Contribution, ...]:
    """Args: `times`, shape (sides, blocks, names); `counting`, variances, and `samples` by name."""
    value, reference = times.mean(axis=1)
    difference, between = value - reference, (times[0] - times[1]).var(axis=0, ddof=1)
    errors = np.sqrt(np.maximum(between, counting) / times.shape[1])
    freedom = times.shape[1] - 1
    rows: list[tuple[float, Contribution]] = []
    for place, (kind, part, event) in enumerate(names):
        error, centre = float(errors[place]), float(difference[place])
        half = two_sided_point(LEVEL, freedom) * error
        row = Contribution(
            part=part, event=event, query="", process=kind, value=float(value[place]),
            reference=float(reference[place]), difference=centre,
            interval=ValueInterval(low=centre - half, high=centre + half),
            resolved=False, samples=round(float(samples[place])),
        )  # fmt: skip
        rows.append((two_sided_tail(abs(centre) / error, freedom), row))
    resolved = resolve_holm([p for p, _ in rows], LEVEL)
    judged = [replace(row, resolved=certain) for (_, row), certain in zip(rows, resolved, strict=True)]
    return tuple(sorted(judged, key=lambda row: -abs(row.difference)))


def _count(seen: Seen) -> Counter[_Doing]:
    found: Counter[_Doing] = Counter()
    for count in seen.processes:
        if count.wait_type not in _IDLE:
            found[_doing(count)] += count.samples
    return found


def _doing(count: ProcessCount) -> _Doing:
    match count.state:
        case SessionState.WAITING:
            return count.kind, Part.WAIT, f"{count.wait_type}/{count.event}"
        case SessionState.ASLEEP:
            return count.kind, Part.REST, ""
        case _:
            return count.kind, Part.RUNNING, ""


def _fold(total: Mapping[_Doing, int]) -> Mapping[_Doing, _Doing | None]:
    """Under which name each one is shown; None where it is not."""
    named = {name: name if samples >= FEWEST_SAMPLES else (*name[:2], "") for name, samples in total.items()}
    together: Counter[_Doing] = Counter()
    for name, samples in total.items():
        together[named[name]] += samples
    return {name: each if together[each] >= FEWEST_SAMPLES else None for name, each in named.items()}


def _collect(
    counted: Mapping[_Doing, int], shown: Mapping[_Doing, _Doing | None], names: Sequence[_Doing]
) -> Iterator[int]:
    for name in names:
        yield sum(samples for each, samples in counted.items() if shown[each] == name)
