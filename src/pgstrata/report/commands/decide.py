"""The answer on other tools' results in plain text of 78 columns: the answer, a table, remarks; and as JSON.

Sentences are made in `decision_sentences`, tables in `decision_tables`.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from pgstrata.compare.one_look import ImportAnswer
from pgstrata.model.answer import ALL_CELLS, Comparison
from pgstrata.model.doubts import BlocksLeftOut, Doubt
from pgstrata.report.blocks.model import begin
from pgstrata.report.blocks.text import wrap
from pgstrata.report.commands.decision_sentences import (
    is_single,
    say_answer,
    say_main_steps,
    say_single_steps,
    say_terms,
)
from pgstrata.report.commands.decision_tables import decision_tables
from pgstrata.report.commands.decision_worth import worth_parts
from pgstrata.report.json.answer import axis_fields, comparison_fields, warning_fields, worth_fields
from pgstrata.report.json.documents import SCHEMA, pick_fields, render_document
from pgstrata.report.sentences.findings import say_doubt
from pgstrata.report.sentences.names import capitalise, count

_MOST_ALIKE: Final = 2
_MOST_DOUBTS: Final = 12
# These only repeat what the sentence about the comparison says already.
_SAID: Final = frozenset({"undecided", "insufficient_blocks", "insufficient_values"})


def render_decision(answer: ImportAnswer) -> str:
    """The answer in words, tables, doubts; no line is longer than 78 columns, if the names allow it.

    What was asked for comes first: with ordered environments the steps, else the comparisons. What is left out of them
    follows at once.
    """
    told = [list(say_answer(answer)), list(say_main_steps(answer))]
    if answer.levels:
        told.reverse()
    doubts = list(group_doubts(answer))
    parts = [
        *([line for text in said for line in wrap(f"{capitalise(text)}.")] for said in told),
        _remarks(text for early, text in doubts if early),
        wrap(say_terms(answer)),
        *decision_tables(answer),
        *worth_parts(answer),
        _single_steps(answer),
        _remarks(text for early, text in doubts if not early),
    ]
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def _single_steps(answer: ImportAnswer) -> list[str]:
    said = [line for text in say_single_steps(answer) for line in wrap(text, first="- ", rest="  ")]
    return ["Steps in single cells, exploratory", *said] if said else []


# ------------------------------------------------------------------------------------------------ remarks


def group_doubts(answer: ImportAnswer) -> Iterator[tuple[bool, str]]:
    """Sentences with whether they are told before the table; of many doubts of one kind the first, and a count."""
    kinds: dict[str, list[Doubt]] = {doubt.code: [] for doubt in answer.warnings}
    for doubt in (*answer.warnings, *(each for item in answer.headlines for each in item.warnings)):
        if doubt.code not in _SAID and doubt not in kinds.setdefault(doubt.code, []):
            kinds[doubt.code].append(doubt)
    left = 0
    for place, alike in enumerate(kinds.values()):
        if place >= _MOST_DOUBTS:
            left += len(alike)
        elif alike:
            yield from _say_alike(answer, alike)
    if left:
        yield False, f"{count(left, 'more doubt')}: --json has them all"


def _say_alike(answer: ImportAnswer, alike: Sequence[Doubt]) -> Iterator[tuple[bool, str]]:
    out = [doubt for doubt in alike if isinstance(doubt, BlocksLeftOut)]
    if len(out) > 1:
        yield True, _say_all_left_out(answer, out)
        return
    shown = alike if len(alike) <= _MOST_ALIKE + 1 else alike[:_MOST_ALIKE]
    yield from ((bool(out), say_doubt(doubt)) for doubt in shown)
    if len(shown) < len(alike):
        more = f"the same of {count(len(alike) - len(shown), 'more comparison')}"
        yield False, f"{more}: --json has them all"


def _say_all_left_out(answer: ImportAnswer, doubts: Sequence[BlocksLeftOut]) -> str:
    """How much is missing in all comparisons, and the one that misses most."""
    numbers = {id(doubt): sum(map(len, doubt.lacking.values())) for doubt in doubts}
    most = max(doubts, key=lambda doubt: numbers[id(doubt)])
    low, high = min(numbers.values()), numbers[id(most)]
    span = count(high, "block") if low == high else f"{low:,} to {count(high, 'block')}"
    of = f"{len(doubts)} of {count(len(answer.headlines), 'comparison')}"
    return (
        f"rows are missing, so that {span} {'is' if high == 1 else 'are'} left out of {of}; the most: {say_doubt(most)}"
    )


def _remarks(texts: Iterator[str]) -> list[str]:
    lines = []
    for text in texts:
        end = "" if text.endswith("?") else "."
        lines += wrap(f"{begin(text)}{end}", first="! ", rest="  ")
    return lines


# ------------------------------------------------------------------------------------------------ JSON


def decision_json(answer: ImportAnswer) -> str:
    """A document of the shape of `show --json`; what only a study has is null."""
    document = {
        "schema": SCHEMA,
        "study": None,
        "question": None,
        "source": answer.source,
        "baseline": _environment(answer.question.baseline),
        "metric": answer.question.metric,
        "threshold": answer.question.threshold,
        "paired": answer.paired,
        "comparisons": [_comparison(answer, item) for item in (*answer.headlines, *answer.explored)],
        "pairs": [],
        "rig": None,
        "floor": None,
        "floors": [],
        "refreshed": None,
        "designs": [],
        "scatter": [],
        "seconds": [],
        "effects": [],
        "cpu_findings": [],
        "axes": [
            axis_fields(axis, cell=_cell_field(axis.cell, single=is_single(answer, axis))) for axis in answer.axes
        ],
        "sustained": [],
        "rates": [],
        "worth": worth_fields(answer.worth),
        "ladders": [],
        "load_findings": [],
        "statements": [],
        "load_trends": [],
        "anomalies": [],
        "shift": [],
        "warnings": warning_fields(answer.warnings),
    }
    return render_document(document)


def _cell_field(cell: str, *, single: bool) -> dict[str, Any] | str:
    """A file may have a single cell that is called "all", too."""
    return cell if cell == ALL_CELLS and not single else {"identity": cell}


def _environment(name: str) -> dict[str, Any]:
    return {"name": name, "levels": {}, "control": None}


def _comparison(answer: ImportAnswer, item: Comparison) -> dict[str, Any]:
    return {
        **comparison_fields(
            item,
            environment=_environment(item.environment),
            reference=answer.question.baseline,
            cell=_cell_field(item.cell, single=item.exploratory),
            direction=answer.question.direction,
        ),
        **pick_fields(item, "values baseline_values"),
    }
