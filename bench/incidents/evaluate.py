"""Recordings to judgements, and judgements to shares: pure but for what is handed in."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from incidents import naive
from incidents.judging import RIGHT, Found, Told, is_right, names_concerned
from incidents.truth import NO_INCIDENT, SETTLE, Injection, Kind, Recording

SOON: Final = 60
"""Seconds after the onset within which an incident is to be found."""
HISTORY: Final = 400
"""Seconds at the beginning of a recording from which nothing is known yet; they are not counted as quiet."""
_EARLY: Final = 10
"""Seconds by which a stretch may begin too early and still be that incident."""
_LONGEST_BEFORE: Final = 600
_HOURS_A_WEEK: Final = 168


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What was made of one injection; None where this pgstrata cannot tell, or found nothing."""

    injection: Injection
    told: Told | None
    found: Found | None
    naive: Found | None

    @property
    def delay(self) -> float:
        """Seconds from the onset to the alarm; infinite where there was none."""
        return self.found.alarm - self.injection.onset if self.found else math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One recording: its injections, and alarms of pgstrata and of the naive rule that belong to none of them."""

    recording: Recording
    judged: tuple[Judged, ...]
    false: tuple[Found, ...]
    naive_false: tuple[Found, ...]

    @property
    def quiet(self) -> float:
        """Seconds in which an alarm would be false."""
        spans = [each for each in self.recording.injections if each.kind not in NO_INCIDENT]
        return max(0.0, quiet_seconds(self.recording, spans))


def before(recording: Recording, place: int) -> tuple[float, float]:
    """The quiet time before an injection: at most ten minutes, and nothing of what came before."""
    onset = recording.injections[place].onset
    begin = recording.begin + 15 if place == 0 else recording.injections[place - 1].end + SETTLE
    return max(begin, onset - _LONGEST_BEFORE), onset


def belongs(found: Found, injection: Injection) -> bool:
    """Whether it overlaps the injection or what comes after it, and was not told before there was anything to tell."""
    early = injection.onset - _EARLY
    return found.begin <= injection.end + SETTLE and found.end >= early and found.alarm >= early


def first_of(found: Sequence[Found], injection: Injection) -> Found | None:
    """The first alarm that belongs to it."""
    return min((each for each in found if belongs(each, injection)), key=lambda each: each.alarm, default=None)


def false_alarms(found: Sequence[Found], recording: Recording) -> Sequence[Found]:
    """What belongs to nothing that was injected as an incident, whether clients noticed that or not."""
    real = [each for each in recording.injections if each.kind not in NO_INCIDENT]
    return [each for each in found if not any(belongs(each, injection) for injection in real)]


def quiet_seconds(recording: Recording, injections: Sequence[Injection]) -> float:
    """Those of the recording after `HISTORY` without the spans of injections and what comes after them."""
    first = recording.begin + HISTORY
    spans = sorted((max(first, each.onset - _EARLY), min(recording.end, each.end + SETTLE)) for each in injections)
    total, reached = recording.end - first, first
    for begin, end in spans:
        total -= max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return total


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """How many of how many."""

    right: int
    all: int

    @property
    def percent(self) -> float:
        """NaN of none."""
        return 100 * self.right / self.all if self.all else math.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """Of all incidents of some recordings; errors are medians in seconds of those that were found, delays too.

    `soon`: found within a minute, `soon_large`: of those with a large fall. `first`: the first cause is right, in the
    true span against the quiet before it; `first_unasked`: that which comes with what was found. `concerned`: a right
    first cause shows the statement or session concerned. `calm`: changes of demand that are called no incident.
    `alarms` are false ones, in `hours` of quiet. `unnoticed` injections, of which the clients saw nothing, are in none
    of these.
    """

    soon: Share
    soon_large: Share
    found: Share
    first: Share
    first_unasked: Share
    concerned: Share
    calm: Share
    delay: float
    onset_error: float
    end_error: float
    alarms: int
    hours: float
    unnoticed: int
    naive_soon: Share
    naive_found: Share
    naive_first: Share
    naive_alarms: int

    @property
    def alarms_a_week(self) -> float:
        return self.alarms / self.hours * _HOURS_A_WEEK if self.hours else math.nan

    @property
    def naive_alarms_a_week(self) -> float:
        return self.naive_alarms / self.hours * _HOURS_A_WEEK if self.hours else math.nan

    @property
    def alarms_at_most(self) -> float:
        """Upper limit of 95 % a week by Poisson's distribution; chi-square as approximated by Wilson and Hilferty."""
        if not self.hours:
            return math.nan
        degrees = 2 * (self.alarms + 1)
        chi = degrees * (1 - 2 / (9 * degrees) + 1.6449 * math.sqrt(2 / (9 * degrees))) ** 3
        return chi / 2 / self.hours * _HOURS_A_WEEK


def score(trials: Sequence[Trial]) -> Scores:
    """Put trials together."""
    every = [each for trial in trials for each in trial.judged]
    real = [each for each in every if each.injection.is_incident]
    large = [each for each in real if each.injection.is_large]
    told = [each for each in real if each.told is not None]
    none = [each for each in every if each.injection.kind in NO_INCIDENT and each.told is not None]
    right = [each for each in told if is_right(each.injection, _of(each))]
    shown = [known for each in right if (known := names_concerned(each.injection, _of(each))) is not None]
    ends = [(each.injection, each.found) for each in real if each.found is not None]
    by_rule = [each.naive for each in real if each.naive is not None]
    return Scores(
        soon=Share(right=sum(each.delay <= SOON for each in real), all=len(real)),
        soon_large=Share(right=sum(each.delay <= SOON for each in large), all=len(large)),
        found=Share(right=len(ends), all=len(real)),
        first=Share(right=len(right), all=len(told)),
        first_unasked=Share(
            right=sum(found.cause in RIGHT[injection.kind] for injection, found in ends), all=len(ends)
        ),
        concerned=Share(right=sum(shown), all=len(shown)),
        calm=Share(right=sum(is_right(each.injection, _of(each)) for each in none), all=len(none)),
        delay=median([each.delay for each in real if each.found]),
        onset_error=median([abs(found.begin - injection.onset) for injection, found in ends]),
        end_error=median([abs(found.end - injection.end) for injection, found in ends]),
        alarms=sum(len(trial.false) for trial in trials),
        hours=sum(trial.quiet for trial in trials) / 3600,
        unnoticed=sum(each.injection.kind not in NO_INCIDENT for each in every) - len(real),
        naive_soon=Share(
            right=sum(each.naive is not None and each.naive.alarm <= each.injection.onset + SOON for each in real),
            all=len(real),
        ),
        naive_found=Share(right=len(by_rule), all=len(real)),
        naive_first=Share(right=sum(_naive_is_right(each) for each in real), all=len(real)),
        naive_alarms=sum(len(trial.naive_false) for trial in trials),
    )


def _of(judged: Judged) -> Told:
    assert judged.told is not None
    return judged.told


def _naive_is_right(judged: Judged) -> bool:
    return judged.naive is not None and naive.is_right(judged.injection.kind, judged.naive)


def median(values: Sequence[float]) -> float:
    """NaN of none."""
    ordered, half = sorted(values), len(values) // 2
    if not ordered:
        return math.nan
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def kinds_of(trials: Sequence[Trial]) -> dict[Kind, list[Judged]]:
    """Judgements by kind, those that exist."""
    found: dict[Kind, list[Judged]] = {}
    for trial in trials:
        for each in trial.judged:
            found.setdefault(each.injection.kind, []).append(each)
    return found
