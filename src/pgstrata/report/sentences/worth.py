"""What throughput costs, in words: value for money against the baseline, prices, and environments without one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pgstrata.model.answer import Answer, Verdict
from pgstrata.model.experiment import Experiment
from pgstrata.model.metrics import SUSTAINED_RATE
from pgstrata.model.price import Cost, Price, ValueFinding, Worth
from pgstrata.report.sentences.names import name_cell, name_environment
from pgstrata.report.sentences.verdicts import Words, name_baseline, render_interval, verdict_word
from pgstrata.units import Direction, render_digits, render_percent_change

WORDS: Final = Words(better="better value", worse="worse value", direction=Direction.HIGHER)
_MOST: Final = 6


def worth_sentences(answer: Answer) -> list[str]:
    """A sentence for each environment, at each peak or in each cell that is on no curve; without full stops."""
    worth, experiment = answer.worth, answer.study.plan.experiment
    if worth is None:
        return []
    told = [finding for finding in worth.findings if _is_told(finding, worth)]
    if not told:
        return []
    texts = [_say(finding, experiment) for finding in told[:_MOST]]
    if (more := len(told) - _MOST) > 0:
        texts.append(f"value for money of {more} more: see the table")
    return texts


def _is_told(finding: ValueFinding, worth: Worth) -> bool:
    """Whether it gets a sentence: a curve gets one for its peak, not for its cells."""
    curves = [each.cells for each in worth.findings if len(each.cells) > 1]
    return len(finding.cells) > 1 or not any(finding.cells[0] in curve for curve in curves)


def _say(finding: ValueFinding, experiment: Experiment) -> str:
    name = name_environment(experiment.environment(finding.environment), experiment)
    where = f" ({name_cells(finding.cells, experiment)})" if len(experiment.cells) > 1 else ""
    return say_value(finding, name, name_baseline(experiment), where)


def say_value(
    finding: ValueFinding, name: str, baseline: str, where: str, *, lacking: str = "too early to tell"
) -> str:
    """18 is 31 % better value than 16 [24, 38]: an hour of it costs 20 % less; `lacking` is said without any effect."""
    dearer = f"an hour of it costs {say_price_ratio(finding.price_ratio)}"
    if finding.effect is None:
        return f"value for money of {name}{where}: {lacking}; {dearer}"
    figures = f"{render_percent_change(finding.effect)} {render_interval(finding.interval)}".rstrip()
    match finding.verdict:
        case Verdict.BETTER | Verdict.WORSE | Verdict.NEGLIGIBLE:
            size = render_percent_change(finding.effect).lstrip("+-")
            small = " (real, but negligible)" if finding.verdict is Verdict.NEGLIGIBLE else ""
            head = f"{name} is {size} {verdict_word(finding, WORDS)} than {baseline}{where} {_ends(finding)}"
            return f"{head.rstrip()}{small}: {dearer}"
        case Verdict.EQUIVALENT:
            return f"{name} gives as much for the money as {baseline}{where}: {figures}; {dearer}"
        case Verdict.INSUFFICIENT:
            few = f"too few values to tell the value for money of {name} from that of {baseline}{where}"
            return f"{few}: {figures} without an interval; {dearer}"
        case _:
            head = f"cannot tell whether {name} is better or worse value than {baseline}{where}"
            return f"{head}: {figures}; {dearer}"


def _ends(finding: ValueFinding) -> str:
    """The interval without signs, as the sentence needs it: [24, 38] better, or [5, 18] worse."""
    if finding.interval is None:
        return ""
    ends = sorted(abs(ratio - 1) for ratio in (finding.interval.low, finding.interval.high))
    low, high = (render_percent_change(1 + end).removesuffix(" %").lstrip("+±") for end in ends)
    return f"[{low}, {high}]"


def say_price_ratio(ratio: float) -> str:
    """The ratio of two prices in words: 20.0 % less, as much, 25.0 % more."""
    change = render_percent_change(ratio)
    if change.startswith("±"):
        return "as much"
    return f"{change[1:]} {'less' if ratio < 1 else 'more'}"


def name_cells(cells: Sequence[str], experiment: Experiment) -> str:
    """The name of a cell, or of the peak of a curve: simple-update, scale 10, best of 1 to 64 clients."""
    first = experiment.cell(cells[0])
    if len(cells) == 1:
        return name_cell(first, experiment)
    numbers = sorted(experiment.cell(cell).clients for cell in cells)
    size = "" if first.stated_scale is None else f", scale {first.scale}"
    return f"{first.workload}{size}, best of {numbers[0]} to {numbers[-1]} clients"


def price_notes(answer: Answer) -> Iterator[str]:
    """Notes on prices: their dates, what they include, environments without a price; without full stops."""
    worth, experiment = answer.worth, answer.study.plan.experiment
    if worth is None:
        return
    named = {
        name_environment(experiment.environment(name), experiment): price
        for name, price in experiment.prices.items()
        if experiment.environment(name).control is None
    }
    yield from price_texts(named)
    if worth.unpriced:
        names = [name_environment(experiment.environment(name), experiment) for name in worth.unpriced]
        yield f"{', '.join(names)}: no price is given, so there is no cost"
    rate = "the highest rate within the objective" if experiment.metric == SUSTAINED_RATE.name else "throughput"
    yield (
        f"Transactions for the money are {rate} ÷ price. A price is taken as exact, so the interval is that of {rate}, "
        "divided by the ratio of the prices, and the verdict comes from the same rule and threshold"
    )


def price_texts(prices: Mapping[str, Price]) -> Iterator[str]:
    """Each price once, after the names that have it: ssh:arm: 1.4464 USD an hour as of 2021-01-15, with one disk."""
    by_price: dict[Price, list[str]] = {}
    for name, price in prices.items():
        by_price.setdefault(price, []).append(name)
    for price, names in by_price.items():
        includes = f", with {price.includes}" if price.includes else ""
        source = f" ({price.source})" if price.source else ""
        yield f"{' and '.join(names)}: {price.text} an hour as of {price.as_of}{includes}{source}"


def say_cost(cost: Cost) -> str:
    """The cost of a million transactions with its interval, without the currency: 0.0123 [0.0119, 0.0128]."""
    text = render_digits(cost.of_a_million(cost.rate))
    if cost.interval is None:
        return text
    low, high = sorted(cost.of_a_million(rate) for rate in cost.interval)
    return f"{text} [{render_digits(low)}, {render_digits(high)}]"
