"""The rule under the noise of a real machine: labels of a recorded A/A series drawn anew, effects multiplied in.

Each comparison takes blocks of the recording in their order, and gives the two runs of each block their labels at
random: nothing differs, so that every difference found is false. Then an effect is multiplied into one arm. Beside it
stands the same with differences drawn from the noise model that was fitted to the recording (`noise.structure`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from figures import Figure
from noise.metrics import metric_logs
from noise.recorded import CELLS, LENGTHS, Pairs, Runs, all_pairs, dead_seconds, load_runs
from noise.redraw import EFFECTS, Outcome, choose_blocks, default_threshold, judge, pool, redraw
from noise.simulate import draw_differences
from noise.structure import Structure, fit_cell

from pgstrata.model.plan import HORIZON
from pgstrata.stats.floor import noise_floor

SEED = 20261121
COMPARISONS = 5000
# Shares around the middle are known to a percent with these.
WITH_EFFECT = 2000
GOAL = 5.0
CPU = "server_cpu_per_tx"
# Seconds of a run in bench/verdicts.py, and comparisons of such runs.
LONG = 60
LONG_COMPARISONS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """The blocks of one cell at one run length, and what was found in comparisons made of them."""

    name: str
    recorded: Outcome
    modelled: Outcome
    notes: tuple[str, ...]


def measure_real_noise() -> Sequence[Figure]:
    """False verdicts by cell and run length, and pooled, as recorded and as modelled."""
    runs, rng = load_runs(), np.random.default_rng(SEED)
    structures = {cell: fit_cell(runs, cell, rng)[0] for cell in CELLS}
    cases = [_measure_case(rng, runs, pairs, structures[pairs.cell]) for pairs in all_pairs(runs)]
    figures = [_figure(f"real noise, {case.name}: different", case.recorded, case.notes) for case in cases]
    every = pool([case.recorded for case in cases])
    model = pool([case.modelled for case in cases])
    figures.append(_figure("real noise, pooled: different", every, (f"{every.count} comparisons",)))
    figures.append(_figure("the same, noise model: different", model))
    figures += [_long_runs(rng, runs, cell, structure) for cell, structure in structures.items()]
    figures += [_whole_series(rng, runs), _server_cpu(rng, runs)]
    return figures


def _figure(name: str, outcome: Outcome, notes: Sequence[str] = ()) -> Figure:
    return Figure(name=name, value=outcome.different, goal=GOAL, unit="%", notes=notes)


def _measure_case(rng: np.random.Generator, runs: Runs, pairs: Pairs, structure: Structure) -> Case:
    d = pairs.differences(runs.logs("tps"))
    blocks = choose_blocks(d.size)
    dead = dead_seconds(runs, pairs.run_seconds)
    drawn = draw_differences(rng, structure, COMPARISONS, blocks, pairs.run_seconds, dead)
    recorded = redraw(rng, d, COMPARISONS, blocks)
    delta = default_threshold(d)
    found_equal, of_model = judge(recorded, 0.0, delta), judge(drawn, 0.0, delta)
    floors = [100 * noise_floor(each) for each in (d, drawn.ravel())]
    notes = [
        f"{d.size} recorded blocks; comparisons of {blocks}",
        f"floor {floors[0]:.1f} % | model: {floors[1]:.1f} %",
        f"A/A: {_equal_text(found_equal)} | model: {_equal_text(of_model)}",
    ]
    for effect in EFFECTS:
        found = [judge(draws[:WITH_EFFECT], effect, delta) for draws in (recorded, drawn)]
        notes.append(f"{effect:.0%}: {found[0].text()} | model: {found[1].text()}")
    name = f"{pairs.cell} {pairs.run_seconds} s"
    return Case(name=name, recorded=found_equal, modelled=of_model, notes=tuple(notes))


def _equal_text(outcome: Outcome) -> str:
    return f"different {outcome.different:.2f} %, equal {outcome.equivalent:.1f} %, {outcome.blocks:.1f} blocks"


def _long_runs(rng: np.random.Generator, runs: Runs, cell: str, structure: Structure) -> Figure:
    """What the fitted model implies for the run length that the rule's own figures assume."""
    dead = dead_seconds(runs, LENGTHS[0])
    draws = draw_differences(rng, structure, LONG_COMPARISONS, HORIZON, LONG, dead)
    delta = default_threshold(draws)
    equal = judge(draws, 0.0, delta)
    notes = [f"floor {100 * noise_floor(draws.ravel()):.1f} %; {_equal_text(equal)}"]
    notes += [f"{effect:.0%}: {judge(draws, effect, delta).text()}" for effect in EFFECTS]
    return _figure(f"noise model, {cell} {LONG} s: different", equal, notes)


def _whole_series(rng: np.random.Generator, runs: Runs) -> Figure:
    """Series as they were recorded, block after block: whatever drifts in them is kept."""
    outcomes = []
    for pairs in all_pairs(runs):
        d = pairs.differences(runs.logs("tps"))
        for series in np.unique(pairs.series):
            own = d[pairs.series == series][:HORIZON]
            outcomes.append(judge(redraw(rng, own, COMPARISONS // 5, own.size), 0.0, default_threshold(d)))
    total = pool(outcomes)
    note = f"{total.count} comparisons of a whole series in its order"
    return _figure("real noise, series as recorded: different", total, (note,))


def _server_cpu(rng: np.random.Generator, runs: Runs) -> Figure:
    """Server CPU per transaction instead of throughput."""
    outcomes, notes = [], []
    for pairs in all_pairs(runs):
        d = pairs.differences(metric_logs(runs, CPU))
        draws = redraw(rng, d, COMPARISONS, choose_blocks(d.size))
        delta = default_threshold(d)
        outcomes.append(judge(draws, 0.0, delta))
        found = ", ".join(
            f"{effect:.0%}: {each.right:.0f} % in {each.blocks:.1f} blocks"
            for effect in EFFECTS
            for each in (judge(draws[:WITH_EFFECT], effect, delta),)
        )
        notes.append(f"{pairs.cell} {pairs.run_seconds} s: false {outcomes[-1].different:.2f} %; {found}")
    return _figure("real noise, server CPU: different", pool(outcomes), notes)
