"""Stacks of the server's processes in one run: what was on a CPU, and who had called it."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStacks:
    """Samples by stack, outermost first ("session;main;PostgresMain"), of one run.

    `seconds` is the CPU time per transaction that one sample stands for. `user_only`: the kernel was not seen.
    `lacking` says why there are none.
    """

    environment: str
    cell: str
    block: int
    seconds: float
    stacks: Mapping[str, int]
    user_only: bool = False
    lacking: str = ""
