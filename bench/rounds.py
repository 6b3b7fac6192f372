"""How many rounds a visit should have: drawn studies under the production rule, in minutes for a right verdict.

Beside fixed numbers stands the number that a study would choose for each visit from its own scatter. That one is not
built: ADR 15 says why, and these figures would show if it became wrong.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from figures import Figure
from machine_noise import Floats

from pgstrata.model.answer import Verdict
from pgstrata.plan.design import ROUND_SECONDS, SHORTEST_SLICE, rounds_of
from pgstrata.stats.family import DifferenceSeries, decide_families
from pgstrata.stats.floor import MAD_TO_SD
from pgstrata.stats.rule import Decision, Rule

SEED = 20261124
STUDIES = 300
EQUALS = 2_000
BLOCKS = 60
MOST = 24
NUMBERS = (8, 12, 16, 24)
# Set-up of one arm: a visit of two takes 7.5 and 11 s with eight rounds and the one that is thrown away.
SETUPS = (1.5, 3.25)
ARMS = (2, 3, 5)
# The threshold and the effect of the first arm; the others are equal to the baseline.
EFFECTS = ((0.03, 0.05), (0.03, 0.02), (0.03, 0.0), (0.01, 0.01))
SIGMAS = (0.03, 0.06, 0.12)
OUTLIERS = 0.03
# Visits before a study's own scatter says anything: as many as any verdict needs.
FIRST = 8
DIFFERENT = frozenset({Verdict.BETTER, Verdict.WORSE, Verdict.NEGLIGIBLE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """SDs of ln(A / B): of a round, and between starts; `heavy` rounds are of Student's t with three degrees of
    freedom, and with `growth` noise grows by that factor over a study.
    """

    round: float
    start: float
    heavy: bool = False
    growth: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Shares in percent, and mean minutes of a study until all its comparisons are decided."""

    right: float
    different: float
    covered: float
    minutes: float

    @property
    def price(self) -> float:
        """Minutes for each right verdict, as if a study that did not decide were made again."""
        return self.minutes / max(self.right, 0.1) * 100


def measure_rounds() -> Sequence[Figure]:
    """What the planned numbers and those from a study's own scatter cost, then whether errors stay with them."""
    return [*_prices(), *_errors()]


def _prices() -> Sequence[Figure]:
    figures = []
    for arms in ARMS:
        chosen, own, notes = [], [], []
        for setup, sigma, (delta, effect) in product(SETUPS, SIGMAS, EFFECTS):
            numbers = (*NUMBERS, rounds_of(arms, delta), None)
            noise = Noise(round=sigma, start=0.005)
            prices = [_study(arms, noise, setup * arms, delta, effect, number) for number in numbers]
            planned = prices[-2].price
            chosen.append(planned / prices[0].price)
            own.append(prices[-1].price / planned)
            row = ", ".join(f"{one.price:.1f} ({one.right:.0f} %)" for one in prices)
            notes.append(f"set-up {setup * arms:g} s, rounds {sigma:.0%}, {effect:.0%} of {delta:.0%}: {row}")
        head = f"minutes for a right verdict (share right) with {NUMBERS}, the planned number of rounds, own scatter"
        figures += [
            Figure(name=f"rounds: {arms} arms, planned / 8", value=_mean(chosen), goal=1.0),
            Figure(
                name=f"rounds: {arms} arms, own scatter / planned", value=_mean(own), goal=0.95, low_is_good=False,
                notes=(head, *notes),
            ),
        ]  # fmt: skip
    return figures


def _mean(ratios: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def _errors() -> Sequence[Figure]:
    figures = []
    for name, number in (("planned", rounds_of(2, 0.03)), ("own scatter", None)):
        outcomes = {}
        for start, heavy, growth in product((0.0, 0.005, 0.02), (False, True), (1.0, 2.0)):
            noise = Noise(round=0.06, start=start, heavy=heavy, growth=growth)
            outcomes[noise] = _study(2, noise, 3.0, 0.03, 0.0, number, studies=EQUALS)
        notes = [
            f"starts {noise.start:.1%}, {'heavy' if noise.heavy else 'normal'}, noise x {noise.growth:g}: "
            f"{one.different:.1f} % different, {one.covered:.1f} % covered" for noise, one in outcomes.items()
        ]  # fmt: skip
        worst = max(one.different for one in outcomes.values())
        least = min(one.covered for one in outcomes.values())
        figures += [
            Figure(name=f"rounds: equal arms different, {name}", value=worst, goal=4.5, unit="%"),
            Figure(
                name=f"rounds: covered, {name}", value=least, goal=95, unit="%", low_is_good=False, notes=notes
            ),
        ]  # fmt: skip
    return figures


def _study(
    arms: int, noise: Noise, setup: float, delta: float, effect: float, number: int | None, studies: int = STUDIES
) -> Outcome:
    """Drawn studies of so many arms; `number` rounds, or by the study's own scatter where it is None."""
    rng = np.random.default_rng([SEED, arms])
    seconds = max(ROUND_SECONDS, SHORTEST_SLICE * arms)
    d = np.empty((arms - 1, studies, BLOCKS))
    cost = np.empty((studies, BLOCKS))
    scale = np.empty((arms - 1, studies, BLOCKS))
    rounds = np.full(studies, number or rounds_of(arms, delta))
    used = np.empty((studies, BLOCKS))
    for block in range(BLOCKS):
        if number is None and block >= FIRST:
            rounds = _own_rounds(d[..., :block], scale[..., :block], used[:, :block], setup, seconds)
        slices, starts = _draw(rng, noise, arms, studies, block)
        logs = slices[1:] - slices[0]
        scale[..., block] = _pair_scale(logs[..., :8])
        kept = np.where(np.arange(MOST) < rounds[:, np.newaxis], logs, np.nan)
        d[..., block] = np.nanmedian(kept, axis=-1) + starts[1:] - starts[0]
        used[:, block], cost[:, block] = rounds, setup + (rounds + 1) * seconds
    signs = np.where(np.arange(studies) % 2 == 0, 1.0, -1.0)
    d[0] += math.log1p(effect) * signs[:, np.newaxis]
    numbers = tuple(range(1, BLOCKS + 1))
    families = [[DifferenceSeries(blocks=numbers, d=arm) for arm in d[:, place]] for place in range(studies)]
    decided = decide_families(families, [[Rule(delta=math.log1p(delta))] * (arms - 1)] * studies)
    return _outcome(decided, cost, math.log1p(effect) * signs, equal_enough=effect < delta)


def _draw(rng: np.random.Generator, noise: Noise, arms: int, studies: int, block: int) -> tuple[Floats, Floats]:
    """ln of what each arm has in each round, and what is its own in this visit; some visits hit one arm hard."""
    shape = (arms, studies, MOST)
    drawn = rng.standard_t(3, shape) / math.sqrt(3) if noise.heavy else rng.normal(size=shape)
    starts = noise.start / math.sqrt(2) * rng.normal(size=shape[:2])
    hit = rng.random(shape[:2]) < OUTLIERS / 2
    starts += np.where(hit, -rng.uniform(0.05, 0.4, shape[:2]), 0.0)
    grown = noise.growth ** (block / BLOCKS)
    return grown * noise.round / math.sqrt(2) * drawn, grown * starts


def _own_rounds(d: Floats, scale: Floats, used: Floats, setup: float, seconds: float) -> Floats:
    """sqrt(variance of rounds / of starts at its upper 90 % limit x set-up / round), even, within 8 and 24.

    Differences are centred within a visit or a pair, and pooled over pairs: no effect changes the number.
    """
    visits = d.shape[-1]
    of_rounds = (np.median(scale, axis=-1) ** 2).mean(axis=0)
    within = of_rounds * (math.pi / 2 / (used + 1.25)).mean(axis=-1)
    total = (_pair_scale(d) ** 2).mean(axis=0)
    freedom = 0.86 * (visits - 1)
    lower = freedom * (1 - 2 / (9 * freedom) - 1.2816 * math.sqrt(2 / (9 * freedom))) ** 3
    of_starts = np.maximum(total * freedom / lower - within, 1e-9)
    best = np.sqrt(math.pi / 2 * of_rounds / of_starts * (setup + seconds) / seconds)
    return np.asarray(np.clip(2 * np.round(best / 2), min(NUMBERS), MOST), dtype=np.float64)


def _pair_scale(values: Floats) -> Floats:
    """SD by the median of |x - y| over pairs along the last axis."""
    first, second = np.triu_indices(values.shape[-1], k=1)
    medians = np.median(np.abs(values[..., first] - values[..., second]), axis=-1)
    return np.asarray(MAD_TO_SD / math.sqrt(2) * medians, dtype=np.float64)


def _outcome(families: Sequence[Sequence[Decision]], cost: Floats, truth: Floats, *, equal_enough: bool) -> Outcome:
    ends = np.array([max(each.n for each in family) for family in families])
    first = [family[0] for family in families]
    different = np.array([one.verdict in DIFFERENT for one in first])
    same_sign = np.array([one.estimate is not None and one.estimate.centre * sign > 0 for one, sign in zip(
        first, truth, strict=True)])  # fmt: skip
    equivalent = np.array([one.verdict is Verdict.EQUIVALENT for one in first])
    spans = [one.estimate.interval for one in first if one.estimate is not None]
    covered = [span.low <= value <= span.high for span, value in zip(spans, truth, strict=True) if span is not None]
    minutes = np.cumsum(cost, axis=-1)[np.arange(len(ends)), ends - 1] / 60
    return Outcome(
        right=100 * float(np.mean((different & same_sign) | (equal_enough & equivalent))),
        different=100 * float(np.mean(different)),
        covered=100 * float(np.mean(covered)),
        minutes=float(minutes.mean()),
    )
