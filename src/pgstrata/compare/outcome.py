"""From headlines to the exit code of a gate."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pgstrata.errors import ExitCode
from pgstrata.model.answer import Verdict

BAD: Final = frozenset({Verdict.WORSE, Verdict.COLLAPSED})
OPEN: Final = frozenset({Verdict.INCONCLUSIVE, Verdict.INSUFFICIENT, Verdict.UNSTABLE})


def gate_code(verdicts: Iterable[Verdict]) -> ExitCode:
    """FAILED if any headline is worse or collapsed, else UNDECIDED if any is open; no headline at all is open too."""
    seen = set(verdicts)
    if seen & BAD:
        return ExitCode.FAILED
    return ExitCode.UNDECIDED if seen & OPEN or not seen else ExitCode.DONE
