"""Crossed factors: what each of them does, and whether that depends on another one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pgstrata.compare.headlines import DIFFERENT
from pgstrata.model.answer import ALL_CELLS, Answer, EffectKind, FactorEffect, Verdict
from pgstrata.model.experiment import Experiment
from pgstrata.report.sentences.names import count, name_factor, name_where
from pgstrata.report.sentences.verdicts import (
    render_between,
    render_figures,
    render_interval,
    render_threshold,
    verdict_label,
)
from pgstrata.units import render_percent_change

_MOST_SENTENCES = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class ContrastRow:
    """One contrast as text; `kind` is its verdict, for its style."""

    name: str
    effect: str
    interval: str
    verdict: str
    kind: str
    decided: str
    p: str
    cell: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Main:
    """A main effect with the interactions that say what it depends on."""

    effect: FactorEffect
    depends: tuple[FactorEffect, ...]


def name_contrast(effect: FactorEffect) -> str:
    """For tables: pages: 2MB against 4kB; of an interaction also where it is looked at."""
    text = f"{name_factor(effect.factor)}: {effect.level} against {effect.reference}"
    if effect.given is None:
        return text
    factor, level, reference = effect.given
    return f"{text}; with {name_factor(factor)} {level} instead of {reference}"


def contrast_rows(answer: Answer) -> tuple[ContrastRow, ...]:
    """All contrasts by the primary metric: main effects first, those over all cells before those of single ones."""
    experiment = answer.study.plan.experiment
    primary = [effect for effect in answer.effects if effect.metric == experiment.metric]
    ordered = sorted(primary, key=lambda effect: (effect.cell != ALL_CELLS, effect.kind is EffectKind.INTERACTION))
    return tuple(_row(effect, experiment) for effect in ordered)


def _row(effect: FactorEffect, experiment: Experiment) -> ContrastRow:
    return ContrastRow(
        name=name_contrast(effect),
        effect=render_percent_change(effect.effect) if effect.effect is not None else "-",
        interval=render_interval(effect.interval) or "-",
        verdict=_label(effect),
        kind=effect.verdict.value if effect.given is None else effect.kind.value,
        decided=f"after {effect.decided_at}" if effect.decided_at is not None else f"not in {effect.blocks}",
        p=f"≤ {effect.repeated_p:.2g}" if effect.repeated_p is not None else "-",
        cell=name_where(effect.cell, experiment),
    )


def _label(effect: FactorEffect) -> str:
    """The verdict in a word or two; an interaction is no gain and no loss."""
    if effect.given is None:
        return verdict_label(effect)
    words = {
        Verdict.BETTER: "depends",
        Verdict.WORSE: "depends",
        Verdict.NEGLIGIBLE: "hardly depends",
        Verdict.EQUIVALENT: "does not depend",
    }
    return words.get(effect.verdict, verdict_label(effect))


def contrast_sentences(answer: Answer) -> list[str]:
    """What each factor does over all cells (or in the only one), and what that depends on; a table holds the rest."""
    mains = _mains(answer)
    if len(mains) > _MOST_SENTENCES:
        found = sum(main.effect.verdict in DIFFERENT for main in mains)
        return [
            f"factors, exploratory: {found} of {count(len(mains), 'main effect')} differ from none; see their table"
        ]
    return [_say(main, answer.study.plan.experiment) for main in mains]


def _mains(answer: Answer) -> list[_Main]:
    metric = answer.study.plan.experiment.metric
    found = [effect for effect in answer.effects if effect.metric == metric]
    together = [effect for effect in found if effect.cell == ALL_CELLS]
    shown = together or (found if len({effect.cell for effect in found}) == 1 else [])
    mains = [effect for effect in shown if effect.kind is EffectKind.MAIN]
    return [_Main(effect=effect, depends=_depending(effect, shown)) for effect in mains]


def _depending(main: FactorEffect, effects: Sequence[FactorEffect]) -> tuple[FactorEffect, ...]:
    key = (main.factor, main.level, main.reference)
    return tuple(
        effect
        for effect in effects
        if effect.kind is EffectKind.INTERACTION and (effect.factor, effect.level, effect.reference) == key
    )


def _say(main: _Main, experiment: Experiment) -> str:
    effect = main.effect
    limit = render_threshold(experiment.threshold)
    head = f"effect of {name_factor(effect.factor)}, {effect.level} against {effect.reference} (exploratory)"
    depends = "".join(f"; {text}" for item in main.depends for text in _say_dependence(item, limit))
    return f"{head}: {_say_size(effect, limit)}{depends}"


def _say_size(effect: FactorEffect, limit: str) -> str:
    match effect.verdict:
        case Verdict.EQUIVALENT:
            return f"no difference larger than {limit}"
        case Verdict.INCONCLUSIVE:
            return f"inconclusive, {render_between(effect.interval)}"
        case Verdict.INSUFFICIENT:
            return f"too early to tell, after {count(effect.blocks, 'block')}"
        case Verdict.UNSTABLE | Verdict.COLLAPSED:
            return str(effect.verdict)
        case _:
            return f"{render_figures(effect)}, {verdict_label(effect)}"


def _say_dependence(effect: FactorEffect, limit: str) -> list[str]:
    """Whether a main effect depends on another factor; nothing where it is too early to say."""
    assert effect.given is not None
    factor, level, reference = effect.given
    on = name_factor(factor)
    match effect.verdict:
        case Verdict.BETTER | Verdict.WORSE:
            return [f"it depends on {on}: {render_figures(effect)} comes on top with {on} = {level}"]
        case Verdict.NEGLIGIBLE:
            return [f"it hardly depends on {on}: {render_figures(effect)} comes on top with {on} = {level}"]
        case Verdict.EQUIVALENT:
            return [f"it does not depend on {on} by more than {limit} ({level} instead of {reference})"]
        case Verdict.INCONCLUSIVE:
            between = render_between(effect.interval)
            return [f"whether it depends on {on} cannot be told: {between} with {level} instead of {reference}"]
        case _:
            return []
