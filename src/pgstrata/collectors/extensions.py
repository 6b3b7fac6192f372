"""Extensions whose library somebody loads into servers: where they are used, their objects, and where these lie.

None is ever switched on here: it has its cost, which all environments of an experiment must bear alike.
"""

from __future__ import annotations

from dataclasses import dataclass

from pgstrata.errors import SqlError
from pgstrata.libpq import quote_literal
from pgstrata.model.experiment import Experiment, ServerKind
from pgstrata.ports.collector import CaptureSubject


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """In which servers an extension is looked for: in our own ones, in those that somebody runs."""

    own: bool = False
    running: bool = False

    def concerns(self, subject: CaptureSubject) -> bool:
        """Whether it is looked for in that server."""
        running = subject.server.environment.server.kind is ServerKind.DSN
        return self.running if running else self.own


def use_where_all_load(experiment: Experiment, extension: str) -> Use:
    """In servers of our own only where all of them load its library; in running ones where somebody did."""
    own = [each for each in experiment.environments if each.server.kind is not ServerKind.DSN]
    return Use(own=all(each.loads(extension) for each in own), running=True)


def create_extension(subject: CaptureSubject, extension: str, setting: str) -> None:
    """Its objects in the database, where its library is loaded.

    Nothing happens where that is not allowed, or they are not installed.

    Args:
        subject: the server.
        extension: its name.
        setting: one of its library's, which every user may see.
    """
    script = (
        f"SELECT 'CREATE EXTENSION IF NOT EXISTS {extension}' FROM pg_settings WHERE name = {quote_literal(setting)} "
        "\\gexec\n"
    )
    try:
        subject.sql.execute(subject.server.address, script)
    except SqlError:
        return


def find_schema(subject: CaptureSubject, extension: str) -> str:
    """The schema of its objects, quoted where it must be; empty where there are none."""
    statement = (
        "SELECT quote_ident(n.nspname) AS schema FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace "
        f"WHERE e.extname = {quote_literal(extension)}"
    )
    rows = subject.sql.query(subject.server.address, statement).rows
    return rows[0][0] if rows else ""
