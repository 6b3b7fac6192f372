"""From a decision to what it came to, and to a comparison: the same whoever measured the observations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from pgstrata.compare.pairing.pairs import median
from pgstrata.compare.verdicts.doubts import Finding
from pgstrata.compare.verdicts.judging import Judged, find_floor
from pgstrata.compare.verdicts.stability import find_instability
from pgstrata.model.answer import Comparison, Verdict
from pgstrata.model.doubts import Doubt
from pgstrata.stats.family import benjamini_hochberg


def find(judged: Judged, *, over: bool) -> Finding:
    """What a comparison came to; `over` if its blocks ended because what they were measured for was decided."""
    pairing, decision = judged.pairing, judged.decision
    primary = pairing.question.primary
    floor = find_floor(pairing) if primary else None
    instability = find_instability(pairing, decision, floor) if primary else None
    # Where there is an interval, it holds for the typical block whatever the groups: then instability is a doubt.
    silent = instability is not None and decision.verdict is Verdict.INSUFFICIENT
    verdict = Verdict.UNSTABLE if silent else decision.verdict
    return Finding(
        pairing=pairing,
        decision=decision,
        verdict=Verdict.COLLAPSED if pairing.collapsed_in else verdict,
        estimate=decision.estimate if pairing.is_estimable and not silent else None,
        instability=instability,
        floor=floor,
        over=over,
        headline=judged.headline,
    )


def to_comparison(finding: Finding, doubts: Iterable[Doubt], *, reference: str = "") -> Comparison:
    """The finding as a comparison with its doubts."""
    pairing, decision, shown = finding.pairing, finding.decision, finding.estimate
    kept = slice(finding.used) if pairing.paired else slice(None)
    return Comparison(
        environment=pairing.environment,
        cell=pairing.cell,
        metric=pairing.metric,
        verdict=finding.verdict,
        effect=pairing.ratio(shown.centre) if shown else None,
        interval=pairing.interval(shown.interval) if shown else None,
        equivalence_interval=pairing.interval(shown.equivalence) if shown else None,
        confidence=1 - decision.error,
        blocks=finding.used,
        planned_blocks=pairing.question.blocks,
        runs=pairing.arm.made + pairing.base.made,
        invalid=pairing.arm.invalid + pairing.base.invalid,
        value=median(pairing.values[kept]),
        baseline_value=median(pairing.base_values[kept]),
        exploratory=not finding.headline,
        control=pairing.control is not None,
        warnings=tuple(doubts),
        lane=decision.lane,
        decided_at=decision.n if decision.decided else None,
        repeated_p=decision.repeated_p,
        level=decision.alpha,
        horizon=pairing.question.horizon,
        reference=reference,
    )


def adjust(comparisons: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """Exploratory comparisons with the p values that their number leaves, by metric; controls among themselves."""
    groups: dict[tuple[str, bool], list[int]] = {}
    for place, comparison in enumerate(comparisons):
        if comparison.exploratory:
            groups.setdefault((comparison.metric, comparison.control), []).append(place)
    adjusted = list(comparisons)
    for places in groups.values():
        values = benjamini_hochberg([comparisons[place].repeated_p for place in places])
        for place, value in zip(places, values, strict=True):
            adjusted[place] = replace(comparisons[place], adjusted_p=value)
    return tuple(adjusted)
