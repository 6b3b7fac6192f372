"""A study as a gate: what decides, why, and the exit code."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from pgstrata.compare.headlines import faulty_controls, lead_comparisons
from pgstrata.compare.one_look import ImportAnswer
from pgstrata.errors import ExitCode
from pgstrata.model.answer import Answer, Comparison, OrderedAxis, Verdict
from pgstrata.stats.ordered import LEVEL

BAD: Final = frozenset({Verdict.WORSE, Verdict.COLLAPSED})
OPEN: Final = frozenset({Verdict.INCONCLUSIVE, Verdict.INSUFFICIENT, Verdict.UNSTABLE})


class GateReason(StrEnum):
    """Why a gate has its exit code; the first that holds."""

    CONTROL_DIFFERS = "control_differs"
    NOTHING_TO_COMPARE = "nothing_to_compare"
    WORSE = "worse"
    UNDECIDED = "undecided"
    EXPLORATORY = "exploratory"
    PASSED = "passed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """An answer to be judged as a gate.

    The experiment in `answer` carries the metric and the threshold that were used; `frozen` are those of the plan.
    `missing` are the measured and the planned blocks of a study that is not at its end, None of one that is.
    """

    answer: Answer
    frozen: tuple[str, float]
    missing: tuple[int, int] | None = None

    @property
    def asked(self) -> tuple[str, float]:
        """The metric and the threshold that were used."""
        experiment = self.answer.study.plan.experiment
        return experiment.metric, experiment.threshold

    @property
    def exploratory(self) -> bool:
        """Whether the metric or the threshold is another one than the plan froze."""
        return self.asked != self.frozen

    @property
    def headlines(self) -> tuple[Comparison, ...]:
        """The comparisons that decide: each environment over all cells, without controls."""
        return pick_headlines(self.answer)

    @property
    def deciding(self) -> tuple[Comparison, ...]:
        """The headlines that keep the gate from passing: those that are worse, else those that are open."""
        bad = tuple(item for item in self.headlines if item.verdict in BAD)
        return bad or tuple(item for item in self.headlines if item.verdict in OPEN)

    @property
    def reason(self) -> GateReason:
        """Why it has its exit code. A control that differs is named first, whatever the headlines are."""
        if faulty_controls(self.answer):
            return GateReason.CONTROL_DIFFERS
        if not self.headlines:
            return GateReason.NOTHING_TO_COMPARE
        if self.deciding:
            return GateReason.WORSE if self.deciding[0].verdict in BAD else GateReason.UNDECIDED
        return GateReason.EXPLORATORY if self.exploratory else GateReason.PASSED

    @property
    def code(self) -> ExitCode:
        """FAILED where a headline is worse, also beside a control that differs; DONE only where the gate passes."""
        doubtful = self.exploratory or bool(faulty_controls(self.answer))
        return gate_code((item.verdict for item in self.headlines), doubtful=doubtful)


def gate_code(verdicts: Iterable[Verdict], *, doubtful: bool = False) -> ExitCode:
    """FAILED if any headline is worse or collapsed, else UNDECIDED if any is open, there is none, or `doubtful`."""
    seen = set(verdicts)
    if seen & BAD:
        return ExitCode.FAILED
    return ExitCode.UNDECIDED if doubtful or seen & OPEN or not seen else ExitCode.DONE


def import_code(answer: ImportAnswer) -> ExitCode:
    """As `gate_code` of the headlines. If levels are ordered and none has enough values for a verdict, steps decide.

    The code is then UNDECIDED if the place of a step is unsure, if there is a trend without a step, or if there are too
    few values to show any step. With blocks, too few values at a single level are enough: more blocks would help.
    """
    verdicts = [item.verdict for item in answer.headlines]
    shown = [axis for axis in answer.axes[: 1 if answer.paired else None] if _can_show(answer, axis)]
    if not shown or set(verdicts) != {Verdict.INSUFFICIENT}:
        return gate_code(verdicts)
    steps = [step.verdict for axis in shown for step in axis.steps]
    trend = any(not axis.steps and axis.trend_p is not None and axis.trend_p <= LEVEL for axis in shown)
    missed = answer.paired and any(axis.out_of_reach for axis in shown)
    return gate_code(steps or [Verdict.EQUIVALENT], doubtful=trend or missed)


def _can_show(answer: ImportAnswer, axis: OrderedAxis) -> bool:
    """Whether the clearest step in so few values would have been found."""
    share = 1 if answer.paired else len(answer.axes)
    return axis.smallest_p is not None and axis.smallest_p <= LEVEL / share


def pick_headlines(answer: Answer) -> tuple[Comparison, ...]:
    """The headlines of a study without its controls."""
    return tuple(item for item in lead_comparisons(answer) if not item.control)


def find_missing(answer: Answer) -> tuple[int, int] | None:
    """Measured and planned blocks where a study has neither all of them nor an answer; None where it is at its end."""
    measured, planned = answer.study.measured_blocks, len(answer.study.plan.blocks)
    headlines = pick_headlines(answer)
    waiting = not headlines or any(item.verdict in OPEN for item in headlines)
    return (measured, planned) if waiting and measured < planned else None
