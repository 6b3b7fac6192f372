"""Statements by server version, and what they share.

They lie in the folder `sql` of a collector as STEM.VERSION.sql: the highest that is not newer than the server is the
one for it, for servers older than all of them the oldest.
"""

from __future__ import annotations

from importlib.resources import files


def statements_for(package: str, stem: str, version: int) -> tuple[tuple[int, str], ...]:
    """Version and text of the statements to try on a server of that version, best first."""
    known = sorted(
        (int(file.name.split(".")[1]), file.read_text("utf-8"))
        for file in (files(package) / "sql").iterdir()
        if file.name.startswith(f"{stem}.")
    )
    suited = [one for one in known if one[0] <= version] or known[:1]
    return tuple(reversed(suited))


def statement_for(package: str, stem: str, version: int) -> tuple[int, str] | None:
    """The best one for a server of that version; None where all are for newer ones."""
    best = statements_for(package, stem, version)[0]
    return best if best[0] <= version else None


def quote_literal(value: str) -> str:
    """A text as a constant of SQL, whatever is in it; for servers with standard_conforming_strings."""
    return "'" + value.replace("'", "''") + "'"


def constants_expression() -> str:
    """The regular expression that finds the constants of a statement, as a constant of SQL."""
    return quote_literal((files(__package__) / "sessions" / "constants.regex").read_text("utf-8").strip())
