"""Pure: whether a run may enter the estimate, with reasons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pgstrata.model.experiment import Allow
from pgstrata.model.runs import Reason, RunStatus, Validity
from pgstrata.ports.driver import DriverResult
from pgstrata.ports.store import RunHeader

# A step of the wall clock against the monotonic one that no slewing explains (adjtime slews at most 0.5 ms per second).
_CLOCK_JUMP: Final = 0.5
# Busy CPUs that belong to neither server, client nor pgstrata; a run with more has company.
_FOREIGN_CPU: Final = 0.25
# What a server or client says when an environment runs out of a resource at a load.
_EXHAUSTED: Final = (
    "too many clients already",
    "remaining connection slots are reserved",
    "out of memory",
    "out of shared memory",
    "could not fork new process",
    "Cannot allocate memory",
    "could not resize shared memory segment",
    "too many connections for",
)


def exhausted(texts: Sequence[str]) -> str | None:
    """The first line that says that connections or memory ran out, or None."""
    for text in texts:
        for line in text.splitlines():
            if any(sign in line for sign in _EXHAUSTED):
                return line.strip()
    return None


def judge_run(
    header: RunHeader, result: DriverResult | None, foreign_cpu: float | None, allow: Allow
) -> tuple[RunStatus, Validity, tuple[Reason, ...]]:
    """Status, validity and reasons of one run.

    Args:
        header: what is known of the run besides the driver's output.
        result: what the driver reported; None if there is nothing to parse.
        foreign_cpu: CPUs busy with neither server, client nor pgstrata; None if unknown.
        allow: what the author of the experiment knowingly allows.
    """
    if header.failure_kind == RunStatus.COLLAPSED:
        return RunStatus.COLLAPSED, Validity.INVALID, (Reason(code="collapsed", text=header.failure),)
    if header.failure or result is None or not result.complete or result.tps is None:
        text = header.failure or "the driver did not come to its summary"
        return RunStatus.FAILED, Validity.INVALID, (Reason(code="failed", text=text), *header.remarks)
    reasons = list(_invalidating(result, allow))
    validity = Validity.INVALID if reasons else Validity.VALID
    doubts = [*_doubts(header, result, foreign_cpu), *header.remarks]
    if doubts and validity is Validity.VALID:
        validity = Validity.SUSPECT
    return RunStatus.COMPLETED, validity, (*reasons, *doubts)


def _invalidating(result: DriverResult, allow: Allow) -> Sequence[Reason]:
    if result.failed and not allow.failed_transactions:
        share = result.failed / max(1, result.failed + result.transactions)
        text = f"{result.failed} transactions failed ({share:.2%}); [allow] failed_transactions accepts that"
        return (Reason(code="failed_transactions", text=text),)
    if result.transactions == 0:
        return (Reason(code="no_transactions", text="no transaction was completed"),)
    return ()


def _doubts(header: RunHeader, result: DriverResult, foreign_cpu: float | None) -> Sequence[Reason]:
    found = []
    if abs(header.wall_drift) > _CLOCK_JUMP:
        found.append(Reason(code="clock_jump", text=f"the wall clock jumped by {header.wall_drift:+.1f} s"))
    if result.retried:
        found.append(Reason(code="retried", text=f"{result.retried} transactions were retried"))
    if foreign_cpu is not None and foreign_cpu > _FOREIGN_CPU:
        text = f"{foreign_cpu:.2f} CPUs were busy elsewhere"
        found.append(Reason(code="foreign_cpu", text=text))
    return found
