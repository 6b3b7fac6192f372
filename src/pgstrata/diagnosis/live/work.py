"""What transactions did in both windows: blocks touched, blocks read, calls. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pgstrata.diagnosis.live.case import Case, Pair
from pgstrata.model.archive import StatementUse

MORE_WORK: Final = 1.5
"""Times as many blocks, reads or calls per transaction from which on it did more."""
_LEAST_READS: Final = 0.05
"""Blocks read per transaction that come to it at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a transaction did: blocks touched, blocks read and calls; None where it is not known.

    Blocks and reads are those of the statements of both windows: of the comparison window what the window's calls would
    have taken then. Where statements were not counted, they are those of the server per transaction.
    """

    blocks: Pair | None
    reads: Pair | None
    calls: Pair | None


def work_of(case: Case) -> Work:
    """What transactions did in both windows."""
    if not case.found.calls:
        hit, read = case.each("blocks_hit"), case.each("blocks_read")
        if hit is None or read is None:
            return Work(blocks=None, reads=None, calls=None)
        blocks = Pair(value=hit.value + read.value, reference=hit.reference + read.reference)
        return Work(blocks=blocks, reads=read, calls=None)
    per = case.value.transactions or case.value.counted or 1.0
    before = (case.reference.transactions if case.value.transactions else case.reference.counted) or 1.0
    calls = Pair(
        value=sum(use.calls for use in case.value.statements.values()) / per,
        reference=sum(use.calls for use in case.reference.statements.values()) / before,
    )
    return Work(
        blocks=_at_same_mix(case, lambda use: use.blocks_hit + use.blocks_read, per),
        reads=_at_same_mix(case, lambda use: use.blocks_read, per),
        calls=calls,
    )


def _at_same_mix(case: Case, amount: Callable[[StatementUse], float], per: float) -> Pair:
    ours = expected = 0.0
    for key, use in case.value.statements.items():
        before = case.reference.statements.get(key)
        if before is not None and before.calls > 0 and key not in case.new:
            ours += amount(use)
            expected += use.calls * amount(before) / before.calls
    return Pair(value=ours / per, reference=expected / per)


def reads_more(work: Work) -> bool:
    """Whether transactions read more blocks."""
    reads = work.reads
    return reads is not None and reads.ratio >= MORE_WORK and reads.difference >= _LEAST_READS


def touches_more(work: Work) -> bool:
    """Whether transactions touch more blocks."""
    return work.blocks is not None and work.blocks.ratio >= MORE_WORK
