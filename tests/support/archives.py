"""Made-up archives of a live server: what happens each second is told by a function."""

from dataclasses import dataclass, field

from pgstrata.model.archive import ArchiveEvent, Blocking, EventKind, Horizon, SessionClass, SessionsLook, StatementUse
from pgstrata.model.query_plans import LivePlan
from pgstrata.ports.recording import Counted
from pgstrata.store.archives.thinning import Keep
from pgstrata.store.archives.writer import ArchiveWriter

START = 1_795_710_000
"""2026-11-26 16:20:00 UTC, a whole minute."""


def session(statement="select", wait="", application="shop", state="active", **more):
    """A class of sessions; `wait` is TYPE/EVENT."""
    wait_type, _, event = wait.partition("/")
    return SessionClass(
        kind=more.pop("kind", "client backend"), database="shop", role="clerk", application=application, state=state,
        wait_type=wait_type, event=event, statement=statement, **more,
    )  # fmt: skip


BLOCKER = session("update", "Client/ClientRead", application="admin", state="idle in transaction")


@dataclass
class Second:
    """What one second was like; `sessions` None: nobody looked."""

    sessions: dict | None = field(default_factory=dict)
    commits: float = 100.0
    blocked: dict = field(default_factory=dict)
    host: dict = field(default_factory=dict)
    relations: dict = field(default_factory=dict)
    horizon: Horizon | None = None


def make_archive(  # noqa: PLR0913 - what an archive has, all of it optional
    folder, seconds, tell, *, begin=START, keep=None, uses=None, facts=None, texts=None, plans=()
):
    """An archive of so many seconds; `tell` is given the number of each, `plans` are (number, statement, plan)."""
    writer = ArchiveWriter.open(folder, keep or Keep())
    writer.add_facts({"server_version": "18.0", "limits": "", **(facts or {})})
    writer.add_event(ArchiveEvent(moment=begin, kind=EventKind.STARTED, detail="18.0"))
    for number in range(seconds):
        moment, second = begin + number, tell(number)
        if second.sessions is not None:
            writer.add_look(moment, SessionsLook(counts=second.sessions, blocked=second.blocked))
            writer.add_server(moment, 1.0, {"commits": second.commits, "connections": 10.0})
        if second.host:
            writer.add_host(moment, 1.0, second.host)
        if second.relations:
            writer.add_relations(moment + 1, 60.0, second.relations)
        if second.horizon is not None:
            writer.add_horizon(moment, second.horizon)
        if uses and number % 10 == 9:
            writer.add_counted(moment + 1, counted(uses(number)))
        if number % 600 == 599:
            writer.flush(moment)
    for number, statement, plan in plans:
        writer.add_plan(begin + number, statement, plan)
    writer.add_texts(texts or {})
    writer.flush(begin + seconds)
    writer.tidy(begin + seconds)
    writer.close()
    return folder


def behind(waiting, root=BLOCKER, pid=4711, held=30, sessions=1):
    """So many sessions of a class behind one."""
    return {Blocking(waiting=waiting, root=root, pid=pid, held=held): sessions}


def counted(uses, seconds=10.0, *, complete=True):
    """What an interval counted."""
    return Counted(seconds=seconds, spent=sum(each.seconds for each in uses.values()), uses=uses, complete=complete)


def planned(*outline, shape=None):
    """A plan with these nodes."""
    return LivePlan(shape=shape or " / ".join(outline), outline=outline)


def use(calls, seconds, blocks=0.0):
    return StatementUse(calls=calls, seconds=seconds, rows=calls, blocks_hit=blocks)
