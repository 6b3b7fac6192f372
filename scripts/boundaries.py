"""Writes src/pgstrata/stats/tables.py: the boundaries of the sequential rule, exact to 24 blocks, drawn beyond.

After n blocks the sizes |D| stand in an order of which each is equally likely, and each has a sign, either equally
likely. All that the capped signed-rank test sees is the pattern of signs in the order of sizes, 2^n patterns. The next
block inserts a sign at one of n + 1 places, each equally likely: the probabilities of all patterns that have crossed
no boundary so far follow by n + 1 additions, and with them, at each n, the largest critical value that keeps the
probability of a crossing by then at or below alpha * (n / last)^0.85, `last` being the horizon: 24 blocks in studies of
versions before 0.2, 60 in others.

There are too many patterns of more than 24 signs. From there on the values are found by drawing orders and signs, on
top of the exact ones, from several seeds; of each the smallest is taken. Up to 24 blocks the drawn values must be
within 1 of the exact ones (they waver by that much where a probability is close to its limit), or nothing is written.
"""

# ruff: noqa: INP001, T201  a script, not a package

from __future__ import annotations

import sys
import textwrap
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

TARGET: Final = Path(__file__).parents[1] / "src" / "pgstrata" / "stats" / "tables.py"

FIRST_LOOKS: Final = {24: 7, 60: 8}
"""By horizon: no level is looked at before a difference can be shown at .045, so that there is an interval."""
HORIZONS: Final = tuple(FIRST_LOOKS)
EXACT: Final = 24
SPENDING_EXPONENT: Final = 0.85
GRID: Final = (0.10, 0.045, 0.02, 0.01, 0.005, 0.0025, 0.001, 0.0005)
SEEDS: Final = (20260101, 20260102, 20260103)
DRAWS: Final = 4_000_000
CHUNK: Final = 100_000
WIDTH: Final = 100


Floats = npt.NDArray[np.float64]
Sums = npt.NDArray[np.uint16]
Bytes = npt.NDArray[np.uint8]


def scores(n: int) -> npt.NDArray[np.int64]:
    """min(rank, ceil(n / 2)) for the ranks 1 to n."""
    return np.minimum(np.arange(1, n + 1), (n + 1) // 2)


def allowed(alpha: float, n: int, horizon: int) -> float:
    """Probability of a crossing that may be used up after n blocks."""
    return float(alpha * (n / horizon) ** SPENDING_EXPONENT) if n >= FIRST_LOOKS[horizon] else 0.0


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


def exact_values(alpha: float, horizon: int) -> tuple[int, ...]:
    """Critical values after 1, 2, ... 24 blocks; -1 where there is none."""
    patterns, spent, values = np.ones(1), 0.0, []
    for n in range(1, EXACT + 1):
        patterns = insert(patterns, n)
        sums = smaller_sums(n)
        values.append(largest(np.bincount(sums, weights=patterns), allowed(alpha, n, horizon) - spent))
        spent += cross(patterns, sums, values[-1])
    return tuple(values)


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


def draw_sums(seed: int) -> Sums:
    """min(S+, S-) after 1, 2, ... blocks of drawn sizes and signs, shape (60, DRAWS)."""
    rng, last = np.random.default_rng(seed), max(HORIZONS)
    parts = [
        sums_of(rng.random((last, CHUNK), dtype=np.float32), rng.random((last, CHUNK), dtype=np.float32) < 0.5)  # noqa: PLR2004
        for _ in range(DRAWS // CHUNK)
    ]
    return np.concatenate(parts, axis=1)


def sums_of(sizes: npt.NDArray[np.float32], better: npt.NDArray[np.bool_]) -> Sums:
    """min(S+, S-) after each block, for sizes and signs of shape (blocks, draws)."""
    ranks = np.zeros(sizes.shape, dtype=np.uint8)
    smaller = np.zeros(sizes.shape, dtype=np.uint16)
    for n in range(1, len(sizes) + 1):
        above = sizes[: n - 1] > sizes[n - 1]
        ranks[: n - 1] += above
        ranks[n - 1] = n - above.sum(axis=0)
        score = np.minimum(ranks[:n], np.uint8((n + 1) // 2))
        plus = (score * better[:n]).sum(axis=0, dtype=np.uint16)
        smaller[n - 1] = np.minimum(plus, np.uint16(scores(n).sum()) - plus)
    return smaller


def drawn_values(sums: Sums, alpha: float, horizon: int, known: Sequence[int] = ()) -> tuple[tuple[int, ...], float]:
    """Critical values as `exact_values` to the horizon, from draws, and what they spend; `known` are taken as given."""
    open_, spent, values = np.ones(sums.shape[1], dtype=np.bool_), 0.0, list(known)
    for n in range(1, horizon + 1):
        if n > len(values):
            by_sum = np.bincount(sums[n - 1][open_]) / sums.shape[1]
            values.append(largest(by_sum, allowed(alpha, n, horizon) - spent))
        crossed = open_ & (sums[n - 1].astype(np.int64) <= values[n - 1])
        spent += float(crossed.mean())
        open_ &= ~crossed
    return tuple(values), spent


def render(tables: dict[int, dict[float, tuple[tuple[int, ...], float]]]) -> str:
    """The module's text; `tables` hold values and what they spend by horizon and level."""
    lines = [
        '"""Critical values of the sequential rule by level. Generated by scripts/boundaries.py: do not edit."""',
        "",
        "from __future__ import annotations",
        "",
        "from collections.abc import Mapping",
        "from typing import Final",
        "",
        f"SPENDING_EXPONENT: Final = {SPENDING_EXPONENT}",
        "",
        "# Horizon, level: values for consecutive numbers of blocks, the last one for the horizon. Up to 24 blocks",
        f"# they are computed from the probabilities of all sign patterns, beyond from {DRAWS} draws of each of the",
        f"# seeds {', '.join(map(str, SEEDS))}.",
        "TABLES: Final[Mapping[int, Mapping[float, str]]] = {",
    ]
    for horizon, levels in tables.items():
        lines.append(f"    {horizon}: {{")
        for alpha, (values, spent) in levels.items():
            lines.append(f"        # spends {spent:.6f}")
            lines += render_values(alpha, values)
        lines.append("    },")
    return "\n".join([*lines, "}", ""])


def render_values(alpha: float, values: Sequence[int]) -> list[str]:
    """An entry of a table, as ruff would format it."""
    lines = textwrap.wrap(" ".join(map(str, values)), WIDTH)
    if len(lines) == 1:
        return [f'        {alpha}: "{lines[0]}",']
    texts = [f'            "{line} "' for line in lines[:-1]]
    return [f"        {alpha}: (", *texts, f'            "{lines[-1]}"', "        ),"]


def main() -> int:
    """Compute, check, write; 1 where the two ways differ."""
    exact = {(horizon, alpha): exact_values(alpha, horizon) for horizon in HORIZONS for alpha in GRID}
    drawn: dict[tuple[int, float], list[tuple[tuple[int, ...], float]]] = {key: [] for key in exact}
    for seed in SEEDS:
        sums = draw_sums(seed)
        for (horizon, alpha), values in exact.items():
            free, _ = drawn_values(sums, alpha, horizon)
            if np.abs(np.subtract(free[:EXACT], values)).max() > 1:
                print(f"{horizon} blocks, {alpha}: drawn {free[:EXACT]}, exact {values}: nothing is written")
                return 1
            drawn[horizon, alpha].append(drawn_values(sums, alpha, horizon, values))
    tables: dict[int, dict[float, tuple[tuple[int, ...], float]]] = {}
    for (horizon, alpha), found in drawn.items():
        chosen = tuple(np.min([values for values, _ in found], axis=0).tolist())
        spent = drawn_values(sums, alpha, horizon, chosen)[1]
        print(f"{horizon} {alpha:<7} {spent:.6f} {' '.join(map(str, chosen))}")
        tables.setdefault(horizon, {})[alpha] = tuple(value for value in chosen if value >= 0), spent
    TARGET.write_text(render(tables), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
