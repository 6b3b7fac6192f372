"""Crossed factors: what each of them does, and whether that depends on another one."""

from collections.abc import Sequence

from pgstrata.compare.headlines import DIFFERENT
from pgstrata.model.answer import ALL_CELLS, Answer, EffectKind, FactorEffect, Verdict
from pgstrata.model.experiment import Experiment
from pgstrata.report.sentences.names import count, name_factor
from pgstrata.report.sentences.verdicts import (
    render_between,
    render_figures,
    render_threshold,
    verdict_label,
)

_MOST_SENTENCES = 6


def name_contrast(effect: FactorEffect) -> str:
    """For tables: pages: 2MB against 4kB; of an interaction also where it is looked at."""
    text = f"{name_factor(effect.factor)}: {effect.level} against {effect.reference}"
    if effect.given is None:
        return text
    factor, level, reference = effect.given
    return f"{text}; with {name_factor(factor)} {level} instead of {reference}"


def primary_effects(answer: Answer) -> list[FactorEffect]:
    """All contrasts by the primary metric: main effects first, those over all cells before those of single ones."""
    found = [effect for effect in answer.effects if effect.metric == answer.study.plan.experiment.metric]
    return sorted(found, key=lambda effect: (effect.cell != ALL_CELLS, effect.kind is EffectKind.INTERACTION))


def label_contrast(effect: FactorEffect) -> str:
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


def render_repeated(effect: FactorEffect) -> str:
    """The smallest level at which "no difference" was excluded."""
    return f"≤ {effect.repeated_p:.2g}" if effect.repeated_p is not None else "-"


def contrast_sentences(answer: Answer) -> list[str]:
    """What each factor does over all cells (or in the only one), and what that depends on; a table holds the rest."""
    found = primary_effects(answer)
    together = [effect for effect in found if effect.cell == ALL_CELLS]
    shown = together or (found if len({effect.cell for effect in found}) == 1 else [])
    mains = [effect for effect in shown if effect.kind is EffectKind.MAIN]
    if len(mains) > _MOST_SENTENCES:
        differing = sum(effect.verdict in DIFFERENT for effect in mains)
        return [
            f"factors, exploratory: {differing} of {count(len(mains), 'main effect')} differ from none; see their table"
        ]
    return [_say(effect, _depending(effect, shown), answer.study.plan.experiment) for effect in mains]


def _depending(main: FactorEffect, effects: Sequence[FactorEffect]) -> tuple[FactorEffect, ...]:
    key = (main.factor, main.level, main.reference)
    return tuple(
        effect
        for effect in effects
        if effect.kind is EffectKind.INTERACTION and (effect.factor, effect.level, effect.reference) == key
    )


def _say(effect: FactorEffect, depending: Sequence[FactorEffect], experiment: Experiment) -> str:
    """A main effect with the interactions that say what it depends on."""
    limit = render_threshold(experiment.threshold)
    head = f"effect of {name_factor(effect.factor)}, {effect.level} against {effect.reference} (exploratory)"
    depends = "".join(f"; {text}" for item in depending for text in _say_dependence(item, limit))
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
