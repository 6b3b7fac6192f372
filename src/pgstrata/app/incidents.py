"""`pgstrata incidents`: an archive searched for stretches that were slower than usual."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pgstrata.app.explain import archive_facts, explain_chosen, require_looks
from pgstrata.app.live_windows import choose_exactly, choose_window
from pgstrata.diagnosis.live.detection import ADOPTED, LEARNED, LEARNING, STEP, Detector, Told
from pgstrata.diagnosis.live.explain import make_courses
from pgstrata.diagnosis.live.memory import KEPT, Memory
from pgstrata.errors import ArchiveError
from pgstrata.model.archive import ArchiveFacts, ArchiveWindow, Span
from pgstrata.model.explanation import Explained
from pgstrata.model.incidents import DemandChange, Detected, Found, Incident, LoadStep
from pgstrata.store.archives.reader import ArchiveReader

_MINUTE: Final = 60
_SAME: Final = 300
"""Seconds within which two changes of demand are one."""
_MOST_EXPLAINED: Final = 20
"""Incidents that are explained; of more, those that lost most."""
_MOST_DRAWN: Final = 400
"""Cells of the chart."""
_MINUTES_LEARNED: Final = 3 * 3600
"""Seconds that are learned from before a window that is read by the minute."""


@dataclass(frozen=True, slots=True)
class ArchivePast:
    """What an archive holds, for a closer look at an alarm."""

    reader: ArchiveReader
    facts: ArchiveFacts

    def window(self, span: Span) -> ArchiveWindow | None:
        """The window in cells of a second where the archive still has seconds."""
        begin, end = max(span.begin, self.facts.span.begin), min(span.end, self.facts.span.end)
        if begin >= end:
            return None
        found = self.reader.window(Span(begin=begin, end=end), self.facts, most=end - begin)
        return found if sum(found.looks) else None


def load_incidents(archive: Path, begin: str | None, end: str | None, *, rate: float, query_text: bool = True) -> Found:
    """Search an archive for incidents.

    Args:
        archive: its folder.
        begin: when the search begins, as the user wrote it; None for the archive's beginning.
        end: when it ends; None for the archive's end.
        rate: false alarms per second that are allowed.
        query_text: whether texts of statements are shown.

    Raises:
        ArchiveError: there is no archive, or nothing is recorded of the window.
        UsageError: a time cannot be read.
    """
    with ArchiveReader.open(archive) as reader:
        facts = archive_facts(reader, archive)
        span, _ = choose_window(facts, begin, end)
        drawn = reader.courses(span, facts, most=_MOST_DRAWN)
        if not any(drawn.looks):
            require_looks(reader.window(span, facts))
        texts = reader.texts() if query_text else {}
        detected = detect(reader, facts, span, rate)
        explained = tuple(_explain(reader, archive, facts, detected, texts))
        coarse = facts.detailed_since if span.begin < facts.detailed_since else None
        courses = make_courses(drawn)
    return Found(
        archive=str(archive), facts=facts, detected=detected, explained=explained, coarse_until=coarse, texts=texts,
        courses=courses,
    )  # fmt: skip


def detect(reader: ArchiveReader, facts: ArchiveFacts, span: Span, rate: float) -> Detected:
    """What is found in a span: by seconds where they are kept, before that by minutes."""
    memory = read_memory(reader, Span(begin=span.begin - KEPT, end=span.end))
    search = _Search(span, Detector(ArchivePast(reader, facts), memory, step=_MINUTE, rate=rate))
    upto = span.begin
    if span.begin < facts.detailed_since:
        # what is usual has to be learned from seconds first
        upto = min(span.end, facts.detailed_since + LEARNING)
        for step in reader.steps(Span(begin=span.begin - _MINUTES_LEARNED, end=span.end), _MINUTE):
            if step.end <= upto or search.detector.active:
                search.add(step, span.begin)
                upto = max(upto, step.end)
    if upto < span.end:
        search.turn(Detector(ArchivePast(reader, facts), memory, step=STEP, rate=rate))
        # an incident before the span is not learned as usual, and one that lasts until it is told
        judged = upto - ADOPTED if upto == span.begin else upto
        for step in reader.steps(Span(begin=judged - LEARNED, end=span.end), STEP):
            search.add(step, upto, judged)
    incidents, demand = _sort(search.told, search.detector.active)
    incidents = tuple(each for each in incidents if each.end is None or each.end > span.begin)
    return Detected(
        span=span, rate=rate, seconds=search.seconds, judged=search.judged + search.detector.judged - search.before,
        incidents=incidents, demand=demand, gaps=tuple(search.gaps), limit=search.detector.limit, days=memory.days,
    )  # fmt: skip


class _Search:
    """Steps of a span, given to a detector, and to a finer one from some moment on."""

    def __init__(self, span: Span, detector: Detector) -> None:
        self.detector = detector
        self.told: list[Told] = []
        self.gaps: list[Span] = []
        self.seconds, self.judged = 0, 0
        self.before = 0
        """Seconds before the span that its detector has judged."""
        self._end = span.begin

    def turn(self, detector: Detector) -> None:
        """Go on with another detector."""
        self.judged += self.detector.judged
        self.detector = detector

    def add(self, step: LoadStep, since: int, judged: int | None = None) -> None:
        """The next step; nothing is told of what ended before `since`, and until `judged` it is only learned from."""
        if step.end <= (since if judged is None else judged):
            self.detector.learn(step)
            return
        if step.end <= since:
            self.detector.see(step)
            self.before = self.detector.judged
            return
        self.told += self.detector.see(step)
        self.seconds += step.seconds
        begin = step.end - step.seconds + 1
        if begin - self._end > _MINUTE:
            self.gaps.append(Span(begin=self._end, end=begin))
        self._end = step.end + 1


def read_memory(reader: ArchiveReader, span: Span) -> Memory:
    """The minutes of former days."""
    memory = Memory()
    for step in reader.steps(span, _MINUTE):
        memory.add(step.end + 1 - _MINUTE, step.load, step.looks, step.commits)
    return memory


def _sort(told: list[Told], last: Incident | None) -> tuple[tuple[Incident, ...], tuple[DemandChange, ...]]:
    """Incidents that ended, and the one that lasts; changes of demand."""
    ended = [each for each in told if isinstance(each, Incident) and each.end is not None]
    demand: list[DemandChange] = []
    for change in told:
        if isinstance(change, DemandChange):
            # one that is found twice is known better the second time
            if demand and change.begin - demand[-1].begin < _SAME and change.kind is demand[-1].kind:
                demand.pop()
            demand.append(change)
    return (*ended, *([last] if last is not None else [])), tuple(demand)


def _explain(
    reader: ArchiveReader, archive: Path, facts: ArchiveFacts, detected: Detected, texts: Mapping[str, str]
) -> Iterator[Explained | None]:
    worst = sorted(detected.incidents, key=lambda each: -each.lost(detected.span.end))[:_MOST_EXPLAINED]
    before: int | None = None
    for incident in detected.incidents:
        yield explain_incident(reader, archive, facts, incident, before, texts) if incident in worst else None
        before = incident.end


def explain_incident(
    reader: ArchiveReader, archive: Path, facts: ArchiveFacts, incident: Incident, since: int | None,
    texts: Mapping[str, str],
) -> Explained | None:  # fmt: skip
    """An incident against the time before it, from `since` on; None where nothing is known of one of the two."""
    end = min(facts.span.end, facts.span.end if incident.end is None else incident.end)
    try:
        chosen = choose_exactly(facts, Span(begin=incident.begin, end=max(end, incident.begin + 1)), since)
        return explain_chosen(reader, archive, facts, chosen, texts)
    except ArchiveError:
        return None
