"""Controls in sentences: an alarm where the baseline differs from itself, else that it does not."""

from __future__ import annotations

from collections.abc import Sequence

from pgstrata.model.answer import Comparison, Verdict
from pgstrata.report.sentences.comparisons import Case, found, places, say_figures, say_on, tested
from pgstrata.report.sentences.names import count
from pgstrata.report.sentences.verdicts import needed_blocks, render_figures, render_threshold


def shout(said: str) -> str:
    """The alarm, to be read before everything else."""
    return f"THE CONTROL DIFFERS FROM ITSELF: DO NOT TRUST ANY OTHER DIFFERENCE OF THIS STUDY. {said}"


def say_control(case: Case) -> str:
    """A control that is no reason for alarm."""
    head, base = f"the control ({case.name})", case.base
    where = say_on(places(case)) if len(case.experiment.cells) > 1 else ""
    # Where there are several figures each names its cell.
    place = where if len(case.items) == 1 else ""
    match case.verdict:
        case Verdict.INSUFFICIENT:
            numbers = sorted({item.blocks for item in case.items})
            blocks = " to ".join(str(number) for number in (numbers[0], numbers[-1])[: len(numbers)])
            needed = max(map(needed_blocks, case.items))
            return f"{head} has too few blocks to say anything yet{where}: {blocks} of {needed}"
        case Verdict.NEGLIGIBLE:
            claim = f"{head} differs from {base} by a trace{place}"
            return f"{say_figures(case, claim, render_figures, place=False)}: doubt differences of that size"
        case Verdict.EQUIVALENT:
            limit = render_threshold(case.experiment.threshold)
            claim = f"{head} does not differ from {base} by more than {limit}{place}, as it must be"
            return say_figures(case, claim, tested, place=False)
        case _:
            claim = f"{head} cannot be told apart from {base}{place}, as it must be"
            return say_figures(case, claim, found, place=False)


def summarise_control(cases: Sequence[Case], all_cells: int) -> str:
    """The calm cells of one control by number."""
    name, base = cases[0].name, cases[0].base
    told = [item for case in cases if case.verdict is not Verdict.INSUFFICIENT for item in case.items]
    if not told:
        return f"the control ({name}) has too few blocks to say anything yet"
    traces = sum(item.verdict is Verdict.NEGLIGIBLE for item in told)
    trace = f" (in {traces} of them it differs by a trace)" if traces else ""
    cells = f"{len(told)} of {count(all_cells, 'cell')}"
    return f"the control ({name}) shows no relevant difference from {base} in {cells}, as it must be{trace}"


def say_chance(items: Sequence[Comparison], name: str, all_cells: int) -> str:
    """Single cells of a control that differ no more than so many cells do by chance."""
    figures = ", ".join(render_figures(item) for item in items)
    return (
        f"the control ({name}) differs in {len(items)} of {count(all_cells, 'cell')} ({figures}), no more than so many "
        "cells do by chance"
    )
