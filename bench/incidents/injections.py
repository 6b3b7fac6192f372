"""Each kind of cause as a generator: up to its first `yield` it begins, each resumption is a fifth of a second in which
it goes on, and closing it ends it and puts everything back. What is drawn at random is drawn before, by `draw`.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Final

from incidents.groups import PERIOD, Limits
from incidents.load import RATE, Load, more_load
from incidents.server import Session, Site
from incidents.truth import CONCERNED, Kind

Course = Generator[None, None, None]
PAUSE: Final = 0.2
_TICKS: Final = os.sysconf("SC_CLK_TCK")
# It ends with the process whose number it is given, its parent, also where that is killed.
_LOOP: Final = "import os, sys\nwhile os.getppid() == int(sys.argv[1]):\n    sum(range(1_000_000))\n"


class NotInjectedError(Exception):
    """What was to become slow has not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Where something is injected: the server, its limits, and the shop's loads, of which the second can be stopped."""

    site: Site
    limits: Limits
    loads: list[Load] = field(default_factory=list)

    def is_possible(self, kind: Kind) -> bool:
        """Whether this machine lets us do it."""
        if kind is Kind.CPU_QUOTA:
            return self.limits.cpu is not None
        return kind is not Kind.IO_THROTTLE or self.limits.io is not None


def draw(kind: Kind, rng: random.Random, seconds: float) -> Mapping[str, float]:
    """What is left to chance in a kind."""
    match kind:
        case Kind.HOT_ROWS | Kind.IDLE_BLOCKER:
            return {"hold": rng.choice((5.0, 12.0, seconds)), "rows": rng.choice((40, 80, 160))}
        case Kind.SMALL_CACHE:
            return {"span": rng.choice((150_000, 250_000))}
        case Kind.WAL_BURST:
            return {"rows": rng.choice((5000, 10000)), "checkpoints": rng.choice((4.0, 8.0))}
        case Kind.CPU_QUOTA:
            return {"share": rng.choice((0.7, 0.85))}
        case Kind.IO_THROTTLE:
            return {"operations": rng.choice((15, 30))}
        case Kind.NOISY_NEIGHBOUR:
            return {"processes": 3 * len(os.sched_getaffinity(0))}
        case Kind.CONNECTION_STORM:
            return {"rate": rng.choice((300, 500)), "sessions": 60}
        case Kind.MORE_DEMAND:
            return {"rate": rng.choice((0.5, 1.0)) * RATE}
        case _:
            return {}


def begin(kind: Kind, scene: Scene, drawn: Mapping[str, float]) -> Course:
    """The course of a kind; nothing has begun before the first `next`."""
    return _COURSES[kind](scene, drawn)


def _hot_rows(scene: Scene, drawn: Mapping[str, float]) -> Course:
    """A session at work holds rows: sums of a large table, one after the other, in one statement."""
    work = (
        f"DO $$ DECLARE last timestamptz := clock_timestamp() + interval '{drawn['hold']:g} s'; BEGIN "
        "WHILE clock_timestamp() < last LOOP "
        "PERFORM sum(length(note)) FROM articles WHERE id < 20000; PERFORM pg_sleep(0.1); END LOOP; END $$;"
    )
    yield from _hold(scene, drawn, Kind.HOT_ROWS, work)


def _idle_blocker(scene: Scene, drawn: Mapping[str, float]) -> Course:
    """A session holds rows and does nothing."""
    yield from _hold(scene, drawn, Kind.IDLE_BLOCKER, "")


def _hold(scene: Scene, drawn: Mapping[str, float], kind: Kind, work: str) -> Course:
    """Hold rows for so long, let them go for a moment, hold them again."""
    rows = f"SELECT item FROM stock WHERE item <= {drawn['rows']:.0f} ORDER BY item FOR UPDATE"
    application = CONCERNED[kind][1]
    with Session(scene.site, application) as session:
        try:
            while True:
                session.run(f"\\o /dev/null\nBEGIN; {rows};\n\\o")
                session.send(work)
                until = time.monotonic() + drawn["hold"]
                while time.monotonic() < until:
                    yield
                session.wait()
                session.run("COMMIT;")
                yield
        finally:
            # it would not notice before the end of its statement that its client is gone
            query = f"FROM pg_stat_activity WHERE application_name = '{application}'"
            scene.site.ask(f"SELECT pg_terminate_backend(pid, 5000) {query}")


def _dropped_index(scene: Scene, _: Mapping[str, float]) -> Course:
    scene.site.ask("DROP INDEX orders_customer")
    try:
        yield from _for_ever()
    finally:
        scene.site.ask("CREATE INDEX orders_customer ON orders (customer)")


def _stale_statistics(scene: Scene, _: Mapping[str, float]) -> Course:
    """Statistics of a time when three queues had all tickets: reading them in order of time seems cheaper."""
    scene.site.ask(
        "BEGIN; UPDATE tickets SET queue = true_queue % 3; ANALYZE tickets; "
        "UPDATE tickets SET queue = true_queue; COMMIT; VACUUM tickets;"
    )
    if "tickets_opened" not in scene.site.ask("EXPLAIN SELECT * FROM tickets WHERE queue = 1 ORDER BY opened LIMIT 10"):
        raise NotInjectedError("the plan of tickets has not changed")
    try:
        yield from _for_ever()
    finally:
        scene.site.ask("VACUUM (ANALYZE) tickets")


def _small_cache(scene: Scene, drawn: Mapping[str, float]) -> Course:
    """The same calls read from many more articles than fit into shared_buffers."""
    scene.site.ask(f"UPDATE working_set SET span = {drawn['span']:.0f}")
    try:
        yield from _for_ever()
    finally:
        scene.site.ask("UPDATE working_set SET span = 4000")


def _wal_burst(scene: Scene, drawn: Mapping[str, float]) -> Course:
    """Rows are loaded without pause, and checkpoints are forced, so that whole pages are written anew."""
    insert = f"INSERT INTO import SELECT n, repeat(md5(n::text), 60) FROM generate_series(1, {drawn['rows']:.0f}) AS n;"
    with Session(scene.site, CONCERNED[Kind.WAL_BURST][1]) as session, Session(scene.site, "postgres") as other:
        try:
            session.run(insert)
            other.send("CHECKPOINT;")
            due = time.monotonic() + drawn["checkpoints"]
            while True:
                yield
                session.run(insert)
                if time.monotonic() >= due:
                    other.wait()
                    # the table is emptied in time, so that the disk is not filled
                    session.run("TRUNCATE import;")
                    other.send("CHECKPOINT;")
                    due = time.monotonic() + drawn["checkpoints"]
        finally:
            scene.site.ask("TRUNCATE import")


def _cpu_quota(scene: Scene, drawn: Mapping[str, float]) -> Course:
    """A part of the CPU time that the server used just before."""
    first, begun = _used(scene.site), time.monotonic()
    time.sleep(8)
    share = (_used(scene.site) - first) / (time.monotonic() - begun) * drawn["share"]
    scene.limits.limit_cpu(max(1000, round(share * PERIOD)))
    try:
        yield from _for_ever()
    finally:
        scene.limits.limit_cpu(None)


def _used(site: Site) -> float:
    """Seconds of CPU of the server's processes."""
    total = 0.0
    for pid in site.processes():
        try:
            with open(f"/proc/{pid}/stat") as file:  # noqa: PTH123
                words = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        total += (int(words[11]) + int(words[12])) / _TICKS
    return total


def _io_throttle(scene: Scene, drawn: Mapping[str, float]) -> Course:
    scene.limits.limit_io(int(drawn["operations"]))
    try:
        yield from _for_ever()
    finally:
        scene.limits.limit_io(None)


def _noisy_neighbour(scene: Scene, drawn: Mapping[str, float]) -> Course:
    words = [sys.executable, "-c", _LOOP, str(os.getpid())]
    loops = [scene.site.start(words, "") for _ in range(int(drawn["processes"]))]
    try:
        yield from _for_ever()
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def _connection_storm(scene: Scene, drawn: Mapping[str, float]) -> Course:
    """An application that connects anew for each statement."""
    file = scene.site.folder / "storm.sql"
    file.write_text("SELECT 1;\n")
    words = [
        scene.site.build.program("pgbench"), "-n", "-C", "-c", f"{drawn['sessions']:.0f}", "-j", "4",
        "-R", f"{drawn['rate']:.0f}", "-T", "3600", "-f", str(file), scene.site.dsn,
    ]  # fmt: skip
    child = scene.site.start(words, CONCERNED[Kind.CONNECTION_STORM][1])
    try:
        yield from _for_ever()
    finally:
        child.kill()
        child.wait()


def _held_vacuum(scene: Scene, _: Mapping[str, float]) -> Course:
    """A transaction whose snapshot keeps dead rows of a small table that is changed all the time."""
    with Session(scene.site, CONCERNED[Kind.HELD_VACUUM][1]) as session:
        session.run("\\o /dev/null\nBEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM counters;\n\\o")
        try:
            yield from _for_ever()
        finally:
            session.run("COMMIT;")
            scene.site.ask("VACUUM counters")


def _more_demand(scene: Scene, drawn: Mapping[str, float]) -> Course:
    load = more_load(scene.site, drawn["rate"])
    try:
        yield from _for_ever()
    finally:
        load.stop()


def _less_demand(scene: Scene, _: Mapping[str, float]) -> Course:
    """The second load pauses."""
    rest = scene.loads.pop()
    rest.stop()
    try:
        yield from _for_ever()
    finally:
        scene.loads.append(rest.again())


def _daily_shape(scene: Scene, _: Mapping[str, float]) -> Course:
    """A day in minutes: demand rises by two thirds and falls again, in steps of 25 seconds."""
    begun = time.monotonic()
    for step in range(100):
        rate = RATE * (0.1 + 0.56 * (1 - abs(step % 12 - 6) / 6))
        with closing(_more_demand(scene, {"rate": rate})) as course:
            next(course)
            while time.monotonic() < begun + 25 * (step + 1):
                yield


def _for_ever() -> Course:
    while True:
        yield


_COURSES: Final[Mapping[Kind, Callable[[Scene, Mapping[str, float]], Course]]] = {
    Kind.HOT_ROWS: _hot_rows,
    Kind.IDLE_BLOCKER: _idle_blocker,
    Kind.DROPPED_INDEX: _dropped_index,
    Kind.STALE_STATISTICS: _stale_statistics,
    Kind.SMALL_CACHE: _small_cache,
    Kind.WAL_BURST: _wal_burst,
    Kind.CPU_QUOTA: _cpu_quota,
    Kind.IO_THROTTLE: _io_throttle,
    Kind.NOISY_NEIGHBOUR: _noisy_neighbour,
    Kind.CONNECTION_STORM: _connection_storm,
    Kind.HELD_VACUUM: _held_vacuum,
    Kind.MORE_DEMAND: _more_demand,
    Kind.LESS_DEMAND: _less_demand,
    Kind.DAILY_SHAPE: _daily_shape,
}
