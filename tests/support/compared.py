"""A comparison of two environments, as a step of a search gets it, by the metric tps."""

from pgstrata.model.answer import Comparison, Interval, Verdict


def compared(name, verdict, effect, *, cell="c", blocks=7, spread=None):
    """`spread`: half of the interval, as a ratio; None for no interval."""
    return Comparison(
        environment=name,
        cell=cell,
        metric="tps",
        verdict=verdict,
        effect=effect,
        interval=Interval(low=effect - spread, high=effect + spread) if effect and spread else None,
        equivalence_interval=None,
        confidence=0.955,
        blocks=blocks,
        planned_blocks=24,
        runs=14,
        invalid=0,
        value=effect or 1.0,
        baseline_value=1.0,
        exploratory=False,
        control=False,
        decided_at=blocks if effect else None,
    )


def by_speed(experiment, first, level):
    """The second environment against the first by their speeds, whatever scatter there is."""
    effect = level / first
    same = abs(effect - 1) < experiment.threshold
    verdict = Verdict.EQUIVALENT if same else Verdict.BETTER if effect > 1 else Verdict.WORSE
    return compared(experiment.environments[1].name, verdict, effect, cell=experiment.cells[0].identity)
