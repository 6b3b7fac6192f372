"""A metric whose values are declared, so that a search can be tried where nothing can be measured."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Synthetic:
    """The declared values: a fixed one on kernels before `kernel`, and that times `factor` from it on.

    `kernel` is a version such as 6.12 or 6.9.0-rc3. `scatter` is the standard deviation of the logarithm of a value.
    """

    kernel: str
    factor: float
    scatter: float
