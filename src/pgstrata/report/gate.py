"""A study as a gate: one line for each headline, and the exit code with its reason."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from pgstrata.compare.outcome import BAD, OPEN, gate_code
from pgstrata.errors import ExitCode
from pgstrata.model.answer import Answer, Comparison, Verdict
from pgstrata.model.metrics import METRICS
from pgstrata.report.fields import render_document
from pgstrata.report.json_form import answer_json
from pgstrata.report.names import count, name_environment
from pgstrata.report.rows import count_blocks
from pgstrata.report.verdicts import lead_comparisons, render_threshold, verdict_label
from pgstrata.report.words import answer_sentences, capitalise, say_comparison


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
        """Whether something else was asked than what the plan froze."""
        return self.asked != self.frozen

    @property
    def headlines(self) -> tuple[Comparison, ...]:
        """What decides: each environment over all cells; controls are not asked about."""
        return pick_headlines(self.answer)

    @property
    def alarms(self) -> tuple[str, ...]:
        """Controls that came out different."""
        return tuple(sentence.text for sentence in answer_sentences(self.answer) if sentence.alarm)

    @property
    def code(self) -> ExitCode:
        """The exit code: nothing exploratory passes, and nothing beside a control that differs."""
        code = gate_code(item.verdict for item in self.headlines)
        passes = not self.exploratory and not self.alarms
        return code if passes or code is not ExitCode.DONE else ExitCode.UNDECIDED

    @property
    def reason(self) -> str:
        """Why it is this code, in a sentence without a full stop."""
        if self.alarms:
            return self.alarms[0]
        if not self.headlines:
            return "there is nothing to compare"
        bad = [item for item in self.headlines if item.verdict in BAD]
        undecided = [item for item in self.headlines if item.verdict in OPEN]
        if bad or undecided:
            return self._name_verdicts(bad or undecided)
        if self.exploratory:
            return "nothing is worse, but only the metric and the threshold of the plan can pass"
        return "nothing is worse"

    def _name_verdicts(self, items: Iterable[Comparison]) -> str:
        """18 (slower), 17 (too early)."""
        experiment = self.answer.study.plan.experiment
        return ", ".join(
            f"{name_environment(experiment.environment(item.environment), experiment)} ({_label(item)})"
            for item in items
        )


def pick_headlines(answer: Answer) -> tuple[Comparison, ...]:
    """The headlines of a study without its controls."""
    return tuple(item for item in lead_comparisons(answer) if not item.control)


def find_missing(answer: Answer) -> tuple[int, int] | None:
    """Measured and planned blocks where a study has neither all of them nor an answer; None where it is at its end."""
    measured, planned = count_blocks(answer.study), len(answer.study.plan.blocks)
    headlines = pick_headlines(answer)
    waiting = not headlines or any(item.verdict in OPEN for item in headlines)
    return (measured, planned) if waiting and measured < planned else None


def _label(item: Comparison) -> str:
    """The verdict, and beside it the metric's own word where that is another."""
    word = verdict_label(item)
    return f"{item.verdict}: {word}" if item.verdict is Verdict.WORSE else word


def render_gate(gate: Gate) -> str:
    """Controls that differ, a line for each headline, what limits them, the exit code; for logs no line is broken."""
    # first of all what makes the rest worth nothing: logs are read from the top
    lines = [f"{text}." for text in gate.alarms]
    lines += [f"{_mark(gate)}{capitalise(say_comparison(gate.answer, item))}." for item in gate.headlines]
    if gate.exploratory:
        lines.append(f"exploratory: asked was {_say(gate.asked)}, but the plan froze {_say(gate.frozen)}")
    if gate.missing is not None:
        measured, planned = gate.missing
        lines.append(
            f"incomplete: {measured} of {count(planned, 'planned block')}; `pgstrata run FILE --study STUDY` goes on"
        )
    lines.append(f"exit code {int(gate.code)}: {gate.reason}")
    return "\n".join(lines) + "\n"


def _mark(gate: Gate) -> str:
    return "exploratory: " if gate.exploratory else ""


def _say(terms: tuple[str, float]) -> str:
    metric, threshold = terms
    return f"{METRICS[metric].title} at {render_threshold(threshold)}"


def gate_json(gate: Gate) -> str:
    """The document of `show --json` with the headlines only, and what the gate makes of them."""
    marked = tuple(replace(item, exploratory=gate.exploratory) for item in gate.headlines)
    document: dict[str, Any] = json.loads(answer_json(replace(gate.answer, comparisons=marked)))
    metric, threshold = gate.frozen
    document["gate"] = {
        "exit_code": int(gate.code),
        "reason": gate.reason,
        "exploratory": gate.exploratory,
        "frozen": {"metric": metric, "threshold": threshold},
        "complete": gate.missing is None,
    }
    return render_document(document)
