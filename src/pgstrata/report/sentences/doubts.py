"""What puts an answer in doubt: each warning once, and many of a kind summed up in one sentence."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from pgstrata.compare.headlines import lead_comparisons, primary_comparisons
from pgstrata.model.answer import ALL_CELLS, Answer, Comparison, Verdict
from pgstrata.model.doubts import CountedDoubt, Doubt
from pgstrata.model.guards import Force, force_of
from pgstrata.model.runs import Validity
from pgstrata.report.sentences.comparisons import BASELINE_COLLAPSED, SMALL_AND_EARLY
from pgstrata.report.sentences.findings import say_doubt_of
from pgstrata.report.sentences.names import capitalise, count, name_place

# These warnings only repeat what the sentence about the comparison says already.
_SAID: Final = frozenset({"undecided", "insufficient_blocks", "control_differs", *BASELINE_COLLAPSED})
_SUSPECT: Final = "suspect_runs"
_MOST_PLACES: Final = 2
_OF_KINDS: Final[Mapping[str, str]] = {
    "anomalies_differ": "in {number} comparisons one environment has more runs far from its median than the other",
    "autovacuums_differ": "in {number} comparisons autovacuum worked more during the runs of one environment",
    "checkpoints_differ": "the number of checkpoints differs between the two environments in {number} comparisons",
    "neighbours_differ": "in {number} comparisons other processes used the CPU during the runs of only one of the two "
    "environments: random order lets this happen to either, and it widens the intervals",
    "not_steady": "{number} times the first fifth of the runs differs from the rest: a longer warm-up (warmup) or "
    "longer runs would show the steady state",
    "small_and_early": "{number} differences are small and were found early, so they may look larger than they are: "
    "confirm them in a fresh study",
    "wal_differs": "WAL per transaction differs by more than a factor of two in {number} comparisons: after a "
    "checkpoint, full-page images weigh more when they are shared by fewer transactions",
}
"""What many doubts of one kind mean for the reader; others are represented by the first of them."""
_OF_SUSPECTS: Final[Mapping[str, str]] = {
    "capture_failed": "in {runs} some counters could not be read",
    "foreign_cpu": "other processes used the CPU during {runs}",
    "near_ceiling": "{runs} came close to what the client alone can drive",
    "retried": "transactions were retried in {runs}",
    "steal": "the hypervisor kept CPU time from this machine during {runs}",
}


@dataclass(frozen=True, slots=True)
class SummedUp:
    """A sentence without a full stop, and the cases that it sums up; none where it is the only one."""

    text: str
    cases: tuple[str, ...] = ()


def sum_up_doubts(answer: Answer) -> tuple[SummedUp, ...]:
    """One sentence for each kind of doubt, in the order in which they arise."""
    kinds: dict[str, list[str]] = {}
    for code, text in _tell(answer):
        kinds.setdefault(code, []).append(text)
    return tuple(_sum_up(answer, code, texts) for code, texts in kinds.items())


def _sum_up(answer: Answer, code: str, texts: Sequence[str]) -> SummedUp:
    if code == _SUSPECT and (text := _say_suspects(answer)):
        return SummedUp(_begin(text), tuple(texts))
    return sum_up_kind(code, texts)


def sum_up_kind(code: str, texts: Sequence[str]) -> SummedUp:
    """One sentence for all doubts of a kind; its cases are their own sentences, without one that it quotes."""
    if len(texts) == 1:
        return SummedUp(texts[0])
    said = _begin(_OF_KINDS.get(code, "").format(number=len(texts)))
    if said:
        return SummedUp(said, tuple(texts))
    return SummedUp(f"{texts[0]} (and {len(texts) - 1} more of this kind)", tuple(texts[1:]))


def _say_suspects(answer: Answer) -> str:
    """By what most suspect runs were disturbed; empty where no run tells."""
    runs = [run for run in answer.study.runs if run.validity is Validity.SUSPECT]
    why = Counter(
        code for run in runs for code in {each.code for each in run.reasons} if force_of(code) is Force.SUSPECT
    )
    if not why:
        return ""
    ((code, number),) = why.most_common(1)
    of = f"{number} of {count(len(answer.study.runs), 'run')}"
    left = len(runs) - number
    others = f", and {left} are suspect for other reasons" if left else ""
    said = _OF_SUSPECTS.get(code, "{runs} are suspect").format(runs=of)
    return f"{said}{others}; they stay in the estimates, and widen the intervals"


def _begin(text: str) -> str:
    return text[:1].upper() + text[1:]


def doubt_sentences(answer: Answer) -> tuple[str, ...]:
    """All warnings once, each with its cells; runs that a headline counts are not counted by cell too."""
    return tuple(text for _, text in _tell(answer))


def _tell(answer: Answer) -> Iterable[tuple[str, str]]:
    """The code of each warning, and its sentence."""
    experiment = answer.study.plan.experiment
    primary = primary_comparisons(answer)
    leads = lead_comparisons(answer)
    places: dict[tuple[str, str], list[str]] = {}
    whole = {
        key for item in primary if item.cell == ALL_CELLS for doubt in item.warnings if (key := _counted(doubt, item))
    }
    for comparison in primary:
        left_out = whole if comparison.cell != ALL_CELLS else set()
        for doubt in _doubts(comparison, left_out, led=comparison in leads):
            found = places.setdefault((doubt.code, say_doubt_of(doubt, experiment)), [])
            place = name_place(comparison.cell, experiment)
            if place not in found:
                found.append(place)
    cells = len({comparison.cell for comparison in primary})
    for doubt in answer.warnings:
        yield doubt.code, capitalise(say_doubt_of(doubt, experiment))
    for (code, text), found in places.items():
        yield code, capitalise(f"{text}{_where(found, cells)}")


def _counted(doubt: Doubt, comparison: Comparison) -> tuple[str, str] | None:
    """Code and environment of a doubt whose number over all cells says more than those of the cells."""
    if isinstance(doubt, CountedDoubt) and doubt.code in {"incomplete", "neighbours_differ", _SUSPECT}:
        return doubt.code, doubt.environment or comparison.environment
    return None


def _doubts(comparison: Comparison, left_out: AbstractSet[tuple[str, str]], *, led: bool) -> Iterable[Doubt]:
    """What the sentence of the answer does not say already."""
    said = _SAID | {SMALL_AND_EARLY} if led else _SAID
    if comparison.verdict is Verdict.UNSTABLE:
        said |= {"unstable"}
    return (
        doubt for doubt in comparison.warnings if doubt.code not in said and _counted(doubt, comparison) not in left_out
    )


def _where(found: Sequence[str], cells: int) -> str:
    if cells <= 1 or len(found) == cells:
        return ""
    left = len(found) - _MOST_PLACES
    rest = f" and {count(left, 'other cell')}" if left > 0 else ""
    return f" ({'; '.join(found[:_MOST_PLACES])}{rest})"
