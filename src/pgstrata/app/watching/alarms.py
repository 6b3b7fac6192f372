"""A follower of a recorder that looks for incidents, tells of them, and has their causes read from the archive."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Final

from pgstrata.app.explain import archive_facts
from pgstrata.app.incidents import ArchivePast, explain_incident, read_memory
from pgstrata.app.watching.hook import Hook, HookState
from pgstrata.app.watching.lately import KEPT as KEPT_LATELY
from pgstrata.app.watching.lately import Lately
from pgstrata.diagnosis.live.detection import ADOPTED, LEARNED, STEP, Detector
from pgstrata.diagnosis.live.memory import KEPT, Memory
from pgstrata.errors import PgstrataError
from pgstrata.model.archive import ArchiveEvent, ArchiveFacts, Span
from pgstrata.model.explanation import Explained
from pgstrata.model.incidents import Ending, Incident, LoadStep
from pgstrata.ports.recording import RecordedSecond
from pgstrata.report.live.incidents import say_begun, say_ended
from pgstrata.report.live.incidents_json import incident_json
from pgstrata.store.archives.reader import ArchiveReader
from pgstrata.system.users import acting_as_itself

_PATIENCE: Final = 15
"""Seconds for which an incident is not told, so that its cause can be told with it."""
_LAST_CALLS: Final = 5.0
"""Seconds that commands have when the recorder ends."""
_MINUTE: Final = 60

Announce = Callable[[Incident | None], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Untold:
    """An incident that began or ended, of which nothing was told yet."""

    incident: Incident
    since: int


class Alarms:
    """Looks for incidents in what is recorded.

    What its detector has learned by then comes from the archive (`open_alarms`).

    Args:
        archive: the folder that is recorded into.
        tell: says what happens to whoever watches the recorder.
        rate: false alarms per second.
        hook: what is run when an incident begins and ends.
        query_text: whether texts of statements are told.
    """

    name = "the search for incidents"

    def __init__(
        self,
        archive: Path,
        tell: Callable[[str], None],
        *,
        rate: float,
        hook: Hook | None = None,
        query_text: bool = True,
    ) -> None:
        self.announce: Announce = lambda _: None
        self._archive, self._tell, self._hook, self._query_text = archive, tell, hook, query_text
        self._memory, self._rate = Memory(), rate
        self._renew()
        self._newest = 0
        self._untold: Untold | None = None
        self._causes: SimpleQueue[tuple[Incident, Explained | None]] = SimpleQueue()
        self._reading = False

    def _renew(self) -> None:
        """Forget all but former days."""
        self._lately = Lately(STEP)
        self._detector = Detector(self._lately, self._memory, step=STEP, rate=self._rate)
        self._minute: list[LoadStep] = []

    def catch_up(self) -> None:
        """Learn from what the archive has, and take over an incident that lasts; nothing of an empty archive.

        If it cannot be read, that is told, and what is usual is learned anew.
        """
        try:
            with ArchiveReader.open(self._archive) as reader:
                facts = reader.facts()
                if facts is not None:
                    self._learn(reader, facts)
        except PgstrataError as error:
            self._tell(f"what is usual cannot be read from the archive and is learned anew: {error.what}")
        finally:
            self._detector.past = self._lately

    def _learn(self, reader: ArchiveReader, facts: ArchiveFacts) -> None:
        end = facts.span.end
        self._memory.take(read_memory(reader, Span(begin=end - KEPT, end=end)))
        # the last of minutes may not have ended yet
        self._newest = end - (1 if facts.detailed_since < end else _MINUTE)
        begin = end - ADOPTED - LEARNED
        self._detector.past = past = ArchivePast(reader, facts)
        for step in reader.steps(Span(begin=begin, end=end), STEP):
            if step.end <= begin + LEARNED:
                self._detector.learn(step)
            elif step.end < end:
                self._detector.see(step)
        # a beginning is looked for second by second, and the step that was cut off goes on
        lately = past.window(Span(begin=max(end - KEPT_LATELY, facts.detailed_since), end=end))
        if lately is not None and lately.cell == 1:
            self._lately.recall(reader.recorded(lately))

    @property
    def is_reading(self) -> bool:
        """Whether a cause is being read beside the recorder."""
        return self._reading and self._causes.empty()

    def begin(self, facts: Mapping[str, str], limits: Sequence[str]) -> None:  # noqa: ARG002
        """An incident that lasted when the recorder was stopped still lasts, as far as anybody knows."""
        if self._detector.active is not None:
            self.announce(self._detector.active)

    def follow(self, second: RecordedSecond) -> None:
        """Detect, and tell what was found as soon as its cause is known."""
        if second.moment <= self._newest:
            self._begin_anew()
        self._newest = second.moment
        step = self._lately.add(second)
        if step is not None:
            self._remember(step)
            for each in self._detector.see(step):
                if isinstance(each, Incident):
                    self._found(each, second.moment)
        self._tell_found(second.moment)
        if self._hook is not None:
            self._hook.tell_failures(self._tell)

    def _begin_anew(self) -> None:
        """The clock was set back: what is usual was learned from moments that are still to come."""
        active = self._detector.active
        if active is not None:
            self._found(replace(active, end=self._newest + 1, ending=Ending.UNSEEN), self._newest)
        self._renew()

    def _found(self, incident: Incident, moment: int) -> None:
        if incident.end is not None:
            self.announce(None)
            self._flush()
            self._report(incident, None)
            return
        self.announce(incident)
        self._untold = Untold(incident=incident, since=moment)

    def _tell_found(self, moment: int) -> None:
        """What is untold, with its cause, or without one where that takes too long."""
        try:
            incident, explained = self._causes.get_nowait()
        except Empty:
            if self._untold is not None and moment - self._untold.since >= _PATIENCE:
                self._flush()
            return
        self._reading = False
        if self._untold is not None and self._untold.incident == incident:
            self._untold = None
            self._report(incident, explained)

    def _flush(self) -> None:
        if self._untold is not None:
            untold, self._untold = self._untold, None
            self._report(untold.incident, None)

    def _report(self, incident: Incident, explained: Explained | None) -> None:
        begun = incident.end is None
        self._tell(say_begun(incident, explained) if begun else say_ended(incident))
        if self._hook is not None:
            state = HookState.BEGIN if begun else HookState.END
            self._hook.call(state, incident.begin, incident_json(incident, explained, str(self._archive)))

    def _remember(self, step: LoadStep) -> None:
        """Minutes for the days to come."""
        minute = (step.end - 1) // _MINUTE
        if self._minute and (self._minute[0].end - 1) // _MINUTE != minute:
            self._memory.add_steps(self._minute)
            self._minute = []
        self._minute.append(step)

    def saved(self, moment: int) -> None:
        """The archive has what the alarm is about: its cause can be read, beside the recorder."""
        if self._untold is None or self._reading or moment < self._untold.incident.found:
            return
        self._reading = True
        incident = self._untold.incident
        threading.Thread(target=self._read_cause, args=(incident,), name="cause", daemon=True).start()

    def _read_cause(self, incident: Incident) -> None:
        explained = None
        try:
            with ExitStack() as ending:
                with acting_as_itself():
                    reader = ending.enter_context(ArchiveReader.open(self._archive))
                facts = archive_facts(reader, self._archive)
                texts = reader.texts() if self._query_text else {}
                explained = explain_incident(reader, self._archive, facts, incident, None, texts)
        except Exception:  # noqa: BLE001, S110 - whatever fails here, the incident is told without a cause
            pass
        finally:
            self._causes.put((incident, explained))

    def learn(self, texts: Mapping[str, str]) -> None:
        """Texts are read from the archive."""

    def note(self, event: ArchiveEvent) -> None:
        """Gaps and resets show in what is recorded."""

    def alarm(self, incident: Incident | None) -> None:
        """Told by itself."""

    def close(self) -> None:
        """Tell what is untold; commands that run have some seconds."""
        self._flush()
        if self._hook is not None:
            self._hook.close(_LAST_CALLS)
            self._hook.tell_failures(self._tell)
