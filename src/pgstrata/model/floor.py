"""The noise floor: what a rig can see."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """The scale of A/A differences of one host x workload x clients x design.

    `s0` is 1.4826 * median |D| in log units over `differences` blocks, of the metric `metric` in the cell `cell`.
    `design` says how it was measured ("runs of 10 s", "16 slices of 250 ms"): a floor does not carry over to another.
    `host` is a digest of the host's part of the fingerprint, `measured` wall-clock time in ISO 8601 with offset.
    `doubt` says why it must not be relied upon (too few differences, too old, another host); empty where it may.
    """

    s0: float
    differences: int
    cell: str
    metric: str
    design: str
    host: str
    measured: str
    doubt: str = ""

    @property
    def valid(self) -> bool:
        """Whether verdicts may rely on it."""
        return not self.doubt
