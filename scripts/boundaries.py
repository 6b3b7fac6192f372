"""Writes src/pgstrata/stats/tables.py: the boundaries of the sequential rule, exactly, and checked by simulation.

After n blocks the sizes |D| stand in an order of which each is equally likely, and each has a sign, either equally
likely. All that the capped signed-rank test sees is the pattern of signs in the order of sizes, 2^n patterns. The next
block inserts a sign at one of n + 1 places, each equally likely: the probabilities of all patterns that have crossed
no boundary so far follow by n + 1 additions, and with them, at each n, the largest critical value that keeps the
probability of a crossing by then at or below alpha * (n / 24)^0.85. Nothing is drawn, so nothing depends on a seed.

The same values are then found a second time by drawing orders and signs, from several seeds; the program refuses to
write if the two ways differ by more than 1 (the drawn ones waver by that much where a probability is close to its
limit). The levels .10, .045 and .01 were frozen from draws before this program existed; those values stay.
"""

# ruff: noqa: INP001, T201  a script, not a package

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

TARGET: Final = Path(__file__).parents[1] / "src" / "pgstrata" / "stats" / "tables.py"

MAX_BLOCKS: Final = 24
SPENDING_EXPONENT: Final = 0.85
GRID: Final = (0.10, 0.045, 0.02, 0.01, 0.005, 0.0025, 0.001, 0.0005)
FROZEN: Final = {
    0.10: (1, 2, 3, 4, 6, 8, 10, 13, 16, 19, 24, 27, 32, 36, 42, 46, 53, 58),
    0.045: (0, 0, 1, 2, 4, 5, 8, 9, 13, 15, 19, 22, 26, 30, 35, 39, 45, 50),
    0.01: (0, 0, 1, 2, 4, 6, 7, 9, 12, 15, 18, 21, 25, 29, 34, 37),
}
SEEDS: Final = (20260101, 20260102, 20260103)
DRAWS: Final = 1_000_000
CHUNK: Final = 100_000


Floats = npt.NDArray[np.float64]
Bytes = npt.NDArray[np.uint8]


def scores(n: int) -> npt.NDArray[np.int64]:
    """min(rank, ceil(n / 2)) for the ranks 1 to n."""
    return np.minimum(np.arange(1, n + 1), (n + 1) // 2)


def allowed(alpha: float, n: int) -> float:
    """Probability of a crossing that may be used up after n blocks."""
    return float(alpha * (n / MAX_BLOCKS) ** SPENDING_EXPONENT)


@cache
def smaller_sums(n: int) -> Bytes:
    """min(S+, S-) of each pattern, shape (2^n,): bit j is the sign of the (j + 1)-th smallest size."""
    plus = np.zeros(2**n, dtype=np.uint8)  # at most 222
    for place, score in enumerate(scores(n)):
        plus.reshape(-1, 2, 2**place)[:, 1, :] += np.uint8(score)
    return np.minimum(plus, np.uint8(scores(n).sum()) - plus)


def insert(patterns: Floats, n: int) -> Floats:
    """Probabilities of the patterns of n signs, from those of n - 1."""
    grown = np.zeros(2**n)
    for place in range(n):
        grown.reshape(-1, 2, 2**place)[...] += patterns.reshape(-1, 1, 2**place)
    grown /= 2 * n
    return grown


def exact_values(alpha: float) -> tuple[int, ...]:
    """Critical values after 1, 2, ... 24 blocks; -1 where there is none."""
    patterns, spent, values = np.ones(1), 0.0, []
    for n in range(1, MAX_BLOCKS + 1):
        patterns = insert(patterns, n)
        sums = smaller_sums(n)
        values.append(largest(np.bincount(sums, weights=patterns), allowed(alpha, n) - spent))
        spent += cross(patterns, sums, values[-1])
    return tuple(values)


def exact_spending(values: Sequence[int]) -> tuple[float, ...]:
    """Probability of a crossing after 1, 2, ... blocks under "no difference"."""
    patterns, spent = np.ones(1), [0.0]
    for n, critical in enumerate(values, start=1):
        patterns = insert(patterns, n)
        spent.append(spent[-1] + cross(patterns, smaller_sums(n), critical))
    return tuple(spent[1:])


def largest(by_sum: Floats, left: float) -> int:
    """The largest critical value that spends at most what is left; -1 where there is none."""
    return int(np.searchsorted(np.cumsum(by_sum), left, side="right")) - 1


def cross(patterns: Floats, sums: Bytes, critical: int) -> float:
    """Probability of crossing now; what has crossed is taken out of `patterns`."""
    if critical < 0:
        return 0.0
    crossed = sums <= critical
    probability = float(patterns[crossed].sum())
    patterns[crossed] = 0.0
    return probability


def draw_sums(seed: int) -> Bytes:
    """min(S+, S-) after 1, 2, ... 24 blocks of drawn sizes and signs, shape (24, DRAWS)."""
    rng = np.random.default_rng(seed)
    parts = [sums_of(rng.random((MAX_BLOCKS, CHUNK)), rng.random((MAX_BLOCKS, CHUNK)) < 0.5)  # noqa: PLR2004
             for _ in range(DRAWS // CHUNK)]  # fmt: skip
    return np.concatenate([np.minimum(plus, minus) for plus, minus in parts], axis=1)


def sums_of(sizes: Floats, better: npt.NDArray[np.bool_]) -> tuple[Bytes, Bytes]:
    """S+ and S- after each block, for sizes and signs of shape (24, draws)."""
    ranks = np.zeros(sizes.shape, dtype=np.uint8)
    plus, minus = np.zeros_like(ranks), np.zeros_like(ranks)
    for n in range(1, MAX_BLOCKS + 1):
        above = sizes[: n - 1] > sizes[n - 1]
        ranks[: n - 1] += above
        ranks[n - 1] = n - above.sum(axis=0)
        score = np.minimum(ranks[:n], np.uint8((n + 1) // 2))
        plus[n - 1] = (score * better[:n]).sum(axis=0)
        minus[n - 1] = score.sum(axis=0) - plus[n - 1]
    return plus, minus


def drawn_values(sums: Bytes, alpha: float) -> tuple[int, ...]:
    """Critical values as `exact_values`, from draws."""
    open_, spent, values = np.ones(sums.shape[1], dtype=np.bool_), 0.0, []
    for n in range(1, MAX_BLOCKS + 1):
        by_sum = np.bincount(sums[n - 1][open_]) / sums.shape[1]
        values.append(largest(by_sum, allowed(alpha, n) - spent))
        crossed = open_ & (sums[n - 1].astype(np.int64) <= values[-1])
        spent += float(crossed.mean())
        open_ &= ~crossed
    return tuple(values)


def render(tables: dict[float, tuple[int, ...]]) -> str:
    """The module's text."""
    lines = [
        '"""Critical values of the sequential rule by level. Generated by scripts/boundaries.py: do not edit."""',
        "",
        "from __future__ import annotations",
        "",
        "from collections.abc import Mapping",
        "from typing import Final",
        "",
        f"MAX_BLOCKS: Final = {MAX_BLOCKS}",
        f"SPENDING_EXPONENT: Final = {SPENDING_EXPONENT}",
        "",
        "# Level: values for consecutive numbers of blocks, the last one for MAX_BLOCKS. Computed from the",
        f"# probabilities of all sign patterns, and found again within 1 by {DRAWS} draws from each of the seeds",
        f"# {', '.join(map(str, SEEDS))}; .10, .045 and .01 were frozen earlier.",
        "TABLES: Final[Mapping[float, tuple[int, ...]]] = {",
    ]
    for alpha, values in tables.items():
        spent = exact_spending([-1] * (MAX_BLOCKS - len(values)) + list(values))[-1]
        lines += [f"    # spends {spent:.6f}", f"    {alpha}: {values},"]
    return "\n".join([*lines, "}", ""])


def main() -> int:
    """Compute, check, write; 1 where the two ways differ."""
    drawn = [draw_sums(seed) for seed in SEEDS]
    tables: dict[float, tuple[int, ...]] = {}
    for alpha in GRID:
        exact = exact_values(alpha)
        simulated = np.min([drawn_values(sums, alpha) for sums in drawn], axis=0)
        frozen = FROZEN.get(alpha)
        chosen = exact if frozen is None else (-1,) * (MAX_BLOCKS - len(frozen)) + frozen
        for name, values in (("exact", exact), ("drawn", simulated), ("written", chosen)):
            print(f"{alpha:<7} {name:<8} {' '.join(f'{value:2}' for value in values)}")
        if np.abs(np.subtract(exact, simulated)).max() > 1 or np.abs(np.subtract(exact, chosen)).max() > 1:
            print(f"the values for {alpha} differ by more than 1: nothing is written")
            return 1
        tables[alpha] = tuple(value for value in chosen if value >= 0)
    TARGET.write_text(render(tables), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
