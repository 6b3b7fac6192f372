"""Incidents found in steps as they come: the same detector for an archive and beside a recorder. Pure.

What is usual is learned from the last hour without incidents, beyond the course of the day (`memory`). Two measures of
the time per transaction are looked at side by side: sessions as sampled, and execution as pg_stat_statements counted
it. Each has two cumulative sums (`stats.shifts`), one for small shifts and one for large ones; an alarm is examined
(`suspicion`) before it is an incident.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from pgstrata.diagnosis.live.demand import LoadRise
from pgstrata.diagnosis.live.memory import Memory
from pgstrata.diagnosis.live.suspicion import BEFORE, ROSE, Examined, Past, examine, locate
from pgstrata.diagnosis.live.usual import REFERENCE, Rule, Score, Usual
from pgstrata.model.archive import Span
from pgstrata.model.attribution import ValueInterval
from pgstrata.model.incidents import DemandChange, DemandKind, Ending, Incident, IncidentKind, LoadStep
from pgstrata.stats.ranks import FloatArray
from pgstrata.stats.shifts import Beginning, CumulativeSum, find_beginning

STEP: Final = 10
"""Seconds of a step where seconds are kept."""
LEARNING: Final = 420
"""Seconds that are needed to know what is usual."""
LEARNED: Final = 3600
"""Seconds that what is usual is made of."""
WEEK: Final = 604_800
ADOPTED: Final = 6 * 3600
"""Seconds after which what lasts is usual."""
_COARSE_STEPS: Final = 20
_MANY_STEPS: Final = 180
_PAUSE: Final = 300
"""Seconds without a step after which an incident is over, as far as anybody knows."""
_AGAIN: Final = 120
"""Seconds between two times that what is usual is made anew, or five steps if they are longer."""
_SLACK: Final = 30
"""Seconds before a sum was last zero that a beginning is looked for in."""
_FEWEST_BEFORE: Final = 60
"""Looks at the time before that are needed to compare with it; otherwise it is compared with what is usual."""
_SAMPLED, _COUNTED = 0, 1
_MUCH_BETTER: Final = 0.5
_HALF: Final = 1.96

Told = Incident | DemandChange


@dataclass(slots=True)
class _Episode:
    """An incident that lasts."""

    incident: Incident
    measure: int
    steps: list[LoadStep]
    scores: list[Score]
    peak: float
    sum: CumulativeSum = field(default_factory=lambda: CumulativeSum(reference=-REFERENCE))
    back: Rule = field(default_factory=lambda: Rule(reference=REFERENCE, threshold=math.inf))


class Detector:
    """Is given steps in order of time, and says what it finds.

    Args:
        past: what was recorded lately, for a closer look at an alarm.
        memory: of former days.
        step: seconds of a step.
        rate: false alarms per second that are allowed.
    """

    def __init__(self, past: Past, memory: Memory | None = None, *, step: int = STEP, rate: float = 1 / WEEK) -> None:
        self.past, self.step = past, step
        self.memory = memory or Memory()
        self.judged = 0
        """Seconds of steps after what is usual was learned."""
        fewest = max(_COARSE_STEPS, LEARNING // step)
        kept = max(_MANY_STEPS, LEARNED // step)
        # two measures share the rate
        length = 2 / (rate * step)
        self._measures = (
            Usual(steps=kept, fewest=fewest, padding=1.0, length=length),
            Usual(steps=kept, fewest=fewest, padding=None, length=length),
        )
        self._rise = LoadRise(steps=kept, fewest=fewest, length=length)
        self._sums = (CumulativeSum(reference=REFERENCE), CumulativeSum(reference=REFERENCE))
        self._bold = (CumulativeSum(reference=REFERENCE), CumulativeSum(reference=REFERENCE))
        self._recent: deque[tuple[LoadStep, tuple[Score | None, Score | None]]] = deque(maxlen=kept)
        self._episode: _Episode | None = None
        self._course: FloatArray | None = None
        self._renewed = 0
        self._last = 0
        self._resumed = 0
        self._limits: deque[float] = deque(maxlen=100_000)  # of four months

    @property
    def active(self) -> Incident | None:
        """The incident that lasts."""
        return None if self._episode is None else self._episode.incident

    @property
    def limit(self) -> float | None:
        """The factor of time per transaction that 95 % of stretches of a minute are found at, typically so far."""
        return math.exp(min(50.0, float(np.median(self._limits)))) if self._limits else None

    def learn(self, step: LoadStep) -> None:
        """A step of before, which nothing is said of."""
        if step.end > self._last:
            self._last = step.end
            self._keep(step)
            self._renew(step.end)

    def see(self, step: LoadStep) -> tuple[Told, ...]:
        """The next step; incidents that began or ended with it, and more demand. One that ended has its `end`."""
        if step.end <= self._last:
            return ()
        paused = self._last and step.end - self._last > self.step + _PAUSE
        told = self._interrupt(step) if paused else ()
        self._last = step.end
        self._renew(step.end)
        scores = self._score(step)
        self._recent.append((step, scores))
        if any(score is not None for score in scores):
            self.judged += step.seconds
        if self._episode is not None:
            return (*told, *self._continue(self._episode, step, scores))
        found = self._watch(step, scores)
        if not found:
            self._keep(step)
            for measure, score in zip(self._measures, scores, strict=True):
                if score is not None:
                    measure.remember(step.end, score)
            found = self._watch_load(step)
        return (*told, *found)

    def _keep(self, step: LoadStep) -> None:
        if step.looks:
            self._rise.keep(step)
        for measure, amounts in zip(self._measures, _amounts(step), strict=True):
            if amounts is not None:
                measure.add(step.end, *amounts)

    def _renew(self, moment: int) -> None:
        known = any(measure.base is not None for measure in self._measures)
        due = max(5 * self.step, _AGAIN) if known else self.step
        if self._episode is not None or moment - self._renewed < due:
            return
        self._renewed = moment
        self._course = self.memory.usual(moment)
        self._rise.learn()
        for measure, bold in zip(self._measures, self._bold, strict=True):
            measure.learn(self._course)
            if measure.base is not None:
                bold.reference = measure.base.bold.reference
        bases = [measure.base for measure in self._measures if measure.base is not None]
        if bases:
            steps = max(1, 50 // self.step)
            self._limits.append(min(base.smallest(steps) for base in bases))

    def _score(self, step: LoadStep) -> tuple[Score | None, Score | None]:
        course = self._course_at(step.end)
        found = [
            None if amounts is None else measure.score(*amounts, course)
            for measure, amounts in zip(self._measures, _amounts(step), strict=True)
        ]
        return found[0], found[1]

    def _course_at(self, moment: int) -> float:
        return 0.0 if self._course is None else float(self._course[moment % 86_400 // 60])

    # ---------------------------------------------------------------------------------------------------- alarms

    def _watch(self, step: LoadStep, scores: tuple[Score | None, Score | None]) -> tuple[Told, ...]:
        alarms: list[tuple[int, int]] = []
        for number, score in enumerate(scores):
            base = self._measures[number].base
            if score is None or base is None:
                continue
            for each, rule in ((self._sums[number], base.rule), (self._bold[number], base.bold)):
                each.add(score.value, score.weight, rule.clip)
                if each.value > rule.threshold:
                    alarms.append((number, each.since))
        if not alarms:
            return ()
        found = self._suspect(step, *max(alarms, key=lambda alarm: -self._scale(alarm[0])))
        for each in (*self._sums, *self._bold):
            each.clear()
        return (found,)

    def _watch_load(self, step: LoadStep) -> tuple[Told, ...]:
        """A load that rises while transactions take as long as usual."""
        begin = self._rise.see(step) if step.looks and math.isfinite(step.commits) else None
        if begin is None or any(
            each.value > measure.base.rule.threshold / 2
            for each, measure in zip(self._sums, self._measures, strict=True)
            if measure.base is not None
        ):
            return ()
        examined = self._unexamined(begin)
        self._rise.accept(begin)
        if examined.kind is not DemandKind.MORE:
            return ()
        return (_demand(examined, begin, step, None),)

    def _scale(self, number: int) -> float:
        base = self._measures[number].base
        return math.inf if base is None else base.scale

    def _suspect(self, step: LoadStep, number: int, slow: int) -> Told:
        """What an alarm of a measure is, whose sum has grown for `slow` steps."""
        begin, interval = self._begin(step, number, slow)
        value = self.past.window(Span(begin=begin, end=step.end + 1))
        reference = self.past.window(Span(begin=self._before(begin), end=begin))
        measure = self._best(number)
        steps = [each for each, _ in self._recent if each.end > begin]
        known = [scores[measure] for each, scores in self._recent if each.end > begin]
        scores = [score for score in known if score is not None]
        if value is None or reference is None or sum(reference.looks) < _FEWEST_BEFORE:
            examined = self._unexamined(begin)
        else:
            examined = examine(value, reference)
        if isinstance(examined.kind, DemandKind):
            return self._adjust(examined, begin, step, scores)
        incident = Incident(
            kind=examined.kind, begin=begin, begin_interval=interval, found=step.end, factor=1.0, peak=1.0,
            throughput=examined.throughput, usual_throughput=examined.usual_throughput, load=examined.load,
            usual_load=examined.usual_load,
        )  # fmt: skip
        for each in self._measures:
            each.forget(begin)
        self._rise.clear()
        self._episode = _Episode(incident=incident, measure=measure, steps=steps, scores=scores, peak=1.0)
        self._episode.incident = self._told(self._episode)
        return self._episode.incident

    def _begin(self, step: LoadStep, number: int, slow: int) -> tuple[int, ValueInterval]:
        """Second by second where sessions tell enough, otherwise by the steps of the measure that alarmed."""
        since = max(self._resumed, step.end - (slow + 1) * self.step - _SLACK)
        if self._best(number) == _SAMPLED:
            whole = self.past.window(Span(begin=self._before(since), end=step.end + 1))
            found = None if whole is None else locate(whole, since, step.end)
            if found is not None:
                return found[0], ValueInterval(low=found[1], high=found[2])
        scores = [(each, found[number]) for each, found in self._recent if each.end > since]
        place = self._by_steps(number, scores, max(1, slow))
        begins = [each.end - each.seconds + 1 for each, _ in scores]
        return begins[place.place], ValueInterval(low=begins[place.low], high=begins[place.high])

    def _by_steps(self, number: int, scores: list[tuple[LoadStep, Score | None]], slow: int) -> Beginning:
        """Where the shift of the last `slow` steps began."""
        base = self._measures[number].base
        assert base is not None
        values = np.array([math.nan if score is None else score.value for _, score in scores])
        known = [score.value for _, score in scores[-slow:] if score is not None]
        return find_beginning(values, max(REFERENCE, float(np.median(known or [0.0]))), base.scale**2)

    def _before(self, moment: int) -> int:
        return min(moment, max(self._resumed, moment - max(BEFORE, 10 * self.step)))

    def _best(self, number: int) -> int:
        """Sessions as sampled, unless what was counted scatters much less."""
        counted = self._scale(_COUNTED) < _MUCH_BETTER * self._scale(_SAMPLED)
        return _COUNTED if number == _COUNTED and counted else _SAMPLED if self._measures[_SAMPLED].base else number

    def _unexamined(self, begin: int) -> Examined:
        """The incident as its steps alone show it, against what is usual."""
        throughput, load = _means([each for each, _ in self._recent if each.end > begin])
        base = self._measures[_SAMPLED].base or self._measures[_COUNTED].base
        before = throughput if base is None else base.transactions / self.step
        usual_load = load if base is None else base.amount / self.step
        kind = DemandKind.MORE if throughput > ROSE * before else IncidentKind.SLOWER
        return Examined(kind=kind, throughput=throughput, usual_throughput=before, load=load, usual_load=usual_load)

    def _adjust(self, examined: Examined, begin: int, step: LoadStep, scores: list[Score]) -> DemandChange:
        """From more demand on, what comes with it is usual."""
        for number, measure in enumerate(self._measures):
            kept = [
                (each.end, *amounts)
                for each, _ in self._recent
                if each.end > begin and (amounts := _amounts(each)[number]) is not None
            ]
            measure.begin_anew(kept)
            measure.learn(self._course)
        self._rise.accept(begin)
        return _demand(examined, begin, step, _factor(scores))

    # ------------------------------------------------------------------------------------------------------ ends

    def _continue(
        self, episode: _Episode, step: LoadStep, scores: tuple[Score | None, Score | None]
    ) -> tuple[Told, ...]:
        episode.steps.append(step)
        score, measure = scores[episode.measure], self._measures[episode.measure]
        if score is not None and measure.base is not None:
            if not episode.sum.value:
                episode.back = measure.back(float(np.median([each.value for each in episode.scores] or [0.0])))
                episode.sum.reference = -episode.back.reference
            episode.scores.append(score)
            episode.sum.add(-score.value, score.weight, episode.back.clip)
            if episode.sum.value > episode.back.threshold:
                return self._finish(episode, self._end(episode, step), Ending.USUAL)
        if step.end - episode.incident.begin >= ADOPTED:
            return self._finish(episode, step.end + 1, Ending.ADOPTED)
        return ()

    def _end(self, episode: _Episode, step: LoadStep) -> int:
        since = step.end - (episode.sum.since + 1) * self.step - _SLACK
        begin = max(episode.incident.begin, since - max(BEFORE, 10 * self.step))
        first = step.end - episode.sum.since * self.step + 1
        if episode.measure == _COUNTED:
            scores = [(each, found[_COUNTED]) for each, found in reversed(self._recent) if each.end > begin]
            place = self._by_steps(_COUNTED, scores, max(1, len(scores) - episode.sum.since))
            first = scores[place.place][0].end + 1
        else:
            whole = self.past.window(Span(begin=begin, end=step.end + 1))
            found = None if whole is None else locate(whole, begin, step.end - self.step, ends=True)
            first = first if found is None else found[0]
        return max(episode.incident.begin + 1, min(step.end, first))

    def _finish(self, episode: _Episode, end: int, ending: Ending) -> tuple[Told, ...]:
        ended = replace(self._told(episode, end), end=end, ending=ending)
        self._episode = None
        if ending is Ending.ADOPTED:
            for number, measure in enumerate(self._measures):
                kept = [
                    (each.end, *amounts)
                    for each in episode.steps[-LEARNED // self.step :]
                    if (amounts := _amounts(each)[number]) is not None
                ]
                measure.begin_anew(kept)
        else:
            for each in episode.steps:
                if each.end - each.seconds >= end:
                    self._keep(each)
        self._renewed = 0
        return (ended,)

    def _interrupt(self, step: LoadStep) -> tuple[Told, ...]:
        """End the comparison second by second at a pause."""
        self._resumed = step.end - step.seconds
        for each in (*self._sums, *self._bold):
            each.clear()
        if self._episode is None:
            return ()
        return self._finish(self._episode, self._last + 1, Ending.UNSEEN)

    def _told(self, episode: _Episode, end: int | None = None) -> Incident:
        """The incident by all steps of it so far."""
        steps = [each for each in episode.steps if end is None or each.end < end] or episode.steps
        scores = episode.scores[: len(steps)] or episode.scores
        base = self._measures[episode.measure].base
        factor = _factor(scores) or 1.0
        throughput, load = _means(steps)
        half = math.inf if base is None or not scores else _HALF * base.scale / math.sqrt(len(scores))
        return replace(
            episode.incident,
            factor=factor,
            factor_interval=None
            if half > 1 or episode.incident.kind is IncidentKind.STALLED
            else ValueInterval(low=factor * math.exp(-half), high=factor * math.exp(half)),
            peak=max([factor, *(math.exp(score.value) for score in scores)]),
            throughput=throughput,
            load=load,
        )


def _demand(examined: Examined, begin: int, step: LoadStep, factor: float | None) -> DemandChange:
    assert isinstance(examined.kind, DemandKind)
    return DemandChange(
        kind=examined.kind, begin=begin, found=step.end, throughput=examined.throughput,
        usual_throughput=examined.usual_throughput, load=examined.load, usual_load=examined.usual_load,
        factor=factor, statements=examined.statements,
    )  # fmt: skip


def _amounts(step: LoadStep) -> tuple[tuple[float, float] | None, tuple[float, float] | None]:
    """Sessions seen, and seconds of execution, each with the transactions of the same time."""
    if not math.isfinite(step.commits):
        return None, None
    sampled = (step.load, step.commits * step.looks) if step.looks else None
    counted = (step.spent * step.seconds, step.commits * step.seconds) if math.isfinite(step.spent) else None
    return sampled, counted


def _factor(scores: list[Score]) -> float | None:
    expected = sum(score.expected for score in scores)
    return sum(score.amount for score in scores) / expected if expected > 0 else None


def _means(steps: list[LoadStep]) -> tuple[float, float]:
    """Throughput and load."""
    rates = [each.commits for each in steps if math.isfinite(each.commits)]
    looks = sum(each.looks for each in steps)
    throughput = math.fsum(rates) / len(rates) if rates else 0.0
    return throughput, math.fsum(each.load for each in steps) / looks if looks else 0.0
