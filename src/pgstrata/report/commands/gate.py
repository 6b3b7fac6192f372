"""A study as a gate: one line for each headline, and the exit code with its reason."""

import json
from dataclasses import replace
from typing import Any, assert_never

from pgstrata.compare.gate import Gate, GateReason
from pgstrata.model.answer import Comparison, Verdict
from pgstrata.model.metrics import METRICS
from pgstrata.report.json.answer import answer_json
from pgstrata.report.json.documents import render_document
from pgstrata.report.sentences.answer import alarm_sentences, say_comparison
from pgstrata.report.sentences.names import capitalise, count, name_environment
from pgstrata.report.sentences.verdicts import render_threshold, verdict_label


def say_reason(gate: Gate) -> str:
    """Why it is this exit code, in a sentence without a full stop."""
    match gate.reason:
        case GateReason.CONTROL_DIFFERS:
            return alarm_sentences(gate.answer)[0]
        case GateReason.NOTHING_TO_COMPARE:
            return "there is nothing to compare"
        case GateReason.WORSE | GateReason.UNDECIDED:
            return _name_verdicts(gate)
        case GateReason.EXPLORATORY:
            return "nothing is worse, but only the metric and the threshold of the plan can pass"
        case GateReason.PASSED:
            return "nothing is worse"
        case _:
            assert_never(gate.reason)


def _name_verdicts(gate: Gate) -> str:
    """18 (slower), 17 (too early)."""
    experiment = gate.answer.study.plan.experiment
    return ", ".join(
        f"{name_environment(experiment.environment(item.environment), experiment)} ({_label(item)})"
        for item in gate.deciding
    )


def _label(item: Comparison) -> str:
    """The verdict, and beside it the metric's own word where that is another."""
    word = verdict_label(item)
    return f"{item.verdict}: {word}" if item.verdict is Verdict.WORSE else word


def render_gate(gate: Gate) -> str:
    """Controls that differ, a line for each headline, what limits them, the exit code; for logs no line is broken."""
    # first of all what makes the rest worth nothing: logs are read from the top
    lines = [f"{text}." for text in alarm_sentences(gate.answer)]
    lines += [f"{_mark(gate)}{capitalise(say_comparison(gate.answer, item))}." for item in gate.headlines]
    if gate.exploratory:
        lines.append(f"exploratory: you asked for {_say(gate.asked)}, but the plan fixed {_say(gate.frozen)}")
    if gate.missing is not None:
        measured, planned = gate.missing
        lines.append(
            f"incomplete: {measured} of {count(planned, 'planned block')}; `pgstrata run FILE --study STUDY` goes on"
        )
    lines.append(f"exit code {int(gate.code)}: {say_reason(gate)}")
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
        "reason": say_reason(gate),
        "reason_code": gate.reason.value,
        "exploratory": gate.exploratory,
        "frozen": {"metric": metric, "threshold": threshold},
        "complete": gate.missing is None,
    }
    return render_document(document)
