"""A clock that nobody waits for, and a memory of all events."""

from pgstrata.ports.events import Event, EventKind


class FakeClock:
    """A coordinator's clock (`ports.Clock`) that moves only when somebody sleeps, and so never keeps a test waiting."""

    def __init__(self, wall: float = 1_700_000_000.0, monotonic: float = 1000.0) -> None:
        self._wall = wall
        self._monotonic = monotonic
        self.slept: list[float] = []

    def wall(self) -> float:
        return self._wall

    def monotonic(self) -> float:
        return self._monotonic

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        """Let time pass on both clocks."""
        self._wall += seconds
        self._monotonic += seconds


class RecordingEvents:
    """Remembers every event (`ports.Events`)."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def emit(self, event: Event) -> None:
        self.events.append(event)

    def of_kind(self, kind: EventKind) -> tuple[Event, ...]:
        """The events of one kind, in the order in which they came."""
        return tuple(event for event in self.events if event.kind is kind)
