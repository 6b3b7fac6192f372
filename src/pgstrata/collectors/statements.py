"""Statements by server version; statements that psql gives to a server again and again; extensions that they need.

Statements lie in the folder `sql` of a collector as STEM.VERSION.sql: the highest that is not newer than the server is
the one for it, for servers older than all of them the oldest.

Extensions are those whose library somebody loads into servers. None is ever switched on here: it has its cost, which
all environments of an experiment must bear alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

from pgstrata.errors import SqlError
from pgstrata.libpq import quote_literal
from pgstrata.model.experiment import Experiment, ServerKind
from pgstrata.ports.collector import CaptureSubject, Sampling
from pgstrata.ports.server import QueryResult

_UNDEFINED: Final = frozenset({"42703", "42P01", "42883"})
"""SQLSTATEs of a column, relation or function that is not there: a fork, or a server newer than the statements."""


def statements_for(package: str, stem: str, version: int) -> tuple[tuple[int, str], ...]:
    """Version and text of the statements to try on a server of that version, best first."""
    known = sorted(
        (int(file.name.split(".")[1]), file.read_text("utf-8"))
        for file in (files(package) / "sql").iterdir()
        if file.name.startswith(f"{stem}.")
    )
    suited = [one for one in known if one[0] <= version] or known[:1]
    return tuple(reversed(suited))


def compose_views(package: str, views: Sequence[str], version: int) -> tuple[tuple[int, str], ...]:
    """One statement of what is read of several views, as VIEW.VERSION.sql: version and text, best first.

    After the best one come those for older servers, to be tried where the server lacks a column. The number is the
    newest version among the parts of a statement; views that came later have no part in it.
    """
    suited = {view: statements_for(package, view, version) for view in views}
    numbers = sorted({number for parts in suited.values() for number, _ in parts if number <= version}, reverse=True)
    oldest = min(number for parts in suited.values() for number, _ in parts)
    return tuple(
        (number, "UNION ALL\n".join(part[1] for parts in suited.values() if (part := _newest(parts, number))))
        for number in numbers or [oldest]
    )


def query_first(subject: CaptureSubject, statements: Sequence[tuple[int, str]]) -> tuple[int, QueryResult]:
    """Version and answer of the first statement of which the server has all columns.

    Raises:
        SqlError: it has all of none, or cannot be asked.
    """
    *better, last = statements
    for number, statement in better:
        try:
            return number, subject.sql.query(subject.server.address, statement)
        except SqlError as error:
            if error.sqlstate not in _UNDEFINED:
                raise
    return last[0], subject.sql.query(subject.server.address, last[1])


def _newest(parts: Sequence[tuple[int, str]], number: int) -> tuple[int, str] | None:
    return next((part for part in parts if part[0] <= number), None)


def constants_expression() -> str:
    """The regular expression that finds the constants of a statement, as a constant of SQL."""
    return quote_literal((files(__package__) / "sessions" / "constants.regex").read_text("utf-8").strip())


PLAIN_STRINGS: Final = "SET standard_conforming_strings = on;\n"
"""What constants in a script need on servers that may read backslashes in them as escapes."""


def render_watch(statement: str, seconds: float, *, begin: str = "") -> str:
    """A script of psql: what is to `begin` with, then the statement, prepared once and given again and again."""
    return f"{begin}PREPARE sample AS\n{statement.rstrip()};\nEXECUTE sample \\watch {seconds:g}\n"


def start_watch(
    subject: CaptureSubject,
    script: str,
    *,
    folder: str,
    name: str,
    conceal: Callable[[bytes], bytes] | None = None,
    prompt: bool = False,
) -> Sampling:
    """A script at work on psql's host, whose answers go into the file `name` in a folder that exists there."""
    process = subject.sql.watch(subject.server.address, script, folder=folder, name=name)
    output = f"{folder}/{name}"
    return Sampling(
        host=subject.sql.host, process=process, output=output, errors=f"{output}.err", conceal=conceal, prompt=prompt
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """Whether an extension is looked for in servers that pgstrata starts (`own`) and in those that somebody runs."""

    own: bool = False
    running: bool = False

    def concerns(self, subject: CaptureSubject) -> bool:
        """Whether it is looked for in that server."""
        running = subject.server.environment.server.kind is ServerKind.DSN
        return self.running if running else self.own


def use_where_all_load(experiment: Experiment, extension: str) -> Use:
    """Use it in pgstrata's servers if all of them load its library, in running ones wherever somebody loaded it."""
    own = [each for each in experiment.environments if each.server.kind is not ServerKind.DSN]
    return Use(own=all(each.loads(extension) for each in own), running=True)


def create_extension(subject: CaptureSubject, extension: str, setting: str) -> None:
    """Create an extension in the database of a server that has loaded its library.

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
