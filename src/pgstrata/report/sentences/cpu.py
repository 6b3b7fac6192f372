"""Differences that CPU per transaction shows where throughput does not: what they are, how large, and what says so."""

from __future__ import annotations

from collections.abc import Sequence

from pgstrata.model.answer import Answer, CpuFinding, Size, Verdict
from pgstrata.model.experiment import Experiment
from pgstrata.report.sentences.names import count, name_both, name_where, say_on
from pgstrata.report.sentences.verdicts import (
    render_confidence,
    render_interval,
    render_threshold,
)
from pgstrata.units import render_percent_change


def cpu_sentences(answer: Answer) -> list[str]:
    """One for each environment, without a full stop at its end; none where throughput shows the same."""
    experiment = answer.study.plan.experiment
    return [say_by_cpu(item, experiment) for item in answer.cpu_findings if item.found and not _repeats(item)]


def _repeats(item: CpuFinding) -> bool:
    """Whether throughput is lower where more server CPU is needed, or higher where less is."""
    return not item.alone and (_grows(item.throughput.effect) is not _grows(item.effect))


def _grows(effect: float | None) -> bool | None:
    return None if effect is None else effect > 1


def say_by_cpu(item: CpuFinding, experiment: Experiment) -> str:
    """What differs, with the sizes of server CPU and throughput; then what shows it, and how surely."""
    name, base = name_both(item.environment, experiment.baseline, experiment)
    head = f"the control ({name})" if item.control else name
    where = say_on(_name_cells(item.cells, experiment), base) if len(experiment.cells) > 1 else ""
    shown = f"{_percent(item.effect)} {render_interval(item.interval)}".rstrip()
    return (
        f"{head} {_say_difference(item)} {base}{where}: server CPU {_figures(item.server_cpu)}, "
        f"throughput {_say_throughput(item.throughput, experiment)}. "
        f"The ratio of server to client CPU shows it ({shown} at {render_confidence(1 - item.level)} confidence), "
        f"but not its size{_doubt(item)}"
    )


def _say_difference(item: CpuFinding) -> str:
    """Uses more server CPU per transaction than; where server CPU itself moved the other way, no more than is known."""
    if _grows(item.server_cpu.effect) is not _grows(item.effect):
        return "differs in CPU per transaction from"
    return f"uses {'less' if item.verdict is Verdict.BETTER else 'more'} server CPU per transaction than"


def _say_throughput(size: Size, experiment: Experiment) -> str:
    figures = _figures(size)
    match size.verdict:
        case Verdict.INCONCLUSIVE:
            return f"{figures} (cannot tell)"
        case Verdict.EQUIVALENT:
            return f"{figures} (no difference larger than {render_threshold(experiment.threshold)})"
        case Verdict.INSUFFICIENT:
            return f"{figures} (too early to tell)"
        case Verdict.UNSTABLE:
            return "unstable"
        case Verdict.COLLAPSED:
            return "unknown, because it collapsed"
        case Verdict.BETTER | Verdict.WORSE | Verdict.NEGLIGIBLE:
            return f"{figures} ({'higher' if _grows(size.effect) else 'lower'})"


def _figures(size: Size) -> str:
    return f"{_percent(size.effect)} {render_interval(size.interval)}".rstrip()


def _percent(effect: float | None) -> str:
    return "of unknown size" if effect is None else render_percent_change(effect)


def _doubt(item: CpuFinding) -> str:
    return "; a control must not differ, so doubt every difference that only CPU shows" if item.control else ""


def _name_cells(cells: Sequence[str], experiment: Experiment) -> str:
    """The only cell by its name, several by their number."""
    if len(cells) == 1:
        return name_where(cells[0], experiment)
    return f"the {count(len(cells), 'cell')} that only read"
