"""`pgstrata watch | explain`: live servers, and what commands on their archives have in common."""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pgstrata.cli.completion import complete_any, complete_archive, complete_cell, complete_environment
from pgstrata.cli.documents import Format, choose_format, print_document
from pgstrata.cli.options import Json, NoQueryText, duration_at

if TYPE_CHECKING:
    from pgstrata.cli.live_screen import LiveScreen
    from pgstrata.report.blocks.model import Document

Archive = Annotated[
    Path,
    typer.Argument(
        metavar="ARCHIVE", help="The folder that `pgstrata watch` records into.", autocompletion=complete_archive
    ),
]


Period = Annotated[
    str,
    typer.Option(
        "--false-alarms-per",
        metavar="PERIOD",
        help="The time in which one false alarm is accepted: hour, day, week, month, or a time such as 3d.",
    ),
]


def watch(
    dsn: Annotated[
        str, typer.Argument(metavar="DSN", help="A running server: SERVICE, postgresql://… or host=… dbname=….")
    ],
    archive: Annotated[Path, typer.Option("--archive", metavar="DIR", help="Folder of the archive, made if missing.")],
    keep: Annotated[str, typer.Option("--keep", metavar="TIME", help="How long records are kept.")] = "30d",
    detail: Annotated[
        str,
        typer.Option(
            "--keep-seconds", metavar="TIME", help="How long single seconds are kept; afterwards only minutes."
        ),
    ] = "7d",
    size: Annotated[
        str, typer.Option("--keep-size", metavar="SIZE", help="Largest size; the oldest records go first.")
    ] = "1GB",
    host: Annotated[
        str | None,
        typer.Option(
            "--host", metavar="HOST", help="The server's machine: ssh:NAME, or local for a container on this one."
        ),
    ] = None,
    no_query_text: Annotated[
        bool, typer.Option("--no-query-text", help="Only ids or hashes of statements, no texts.")
    ] = False,
    no_plans: Annotated[
        bool, typer.Option("--no-plans", help="Keep no plans of statements, and do not ask for any (EXPLAIN).")
    ] = False,
    duration: Annotated[
        str | None, typer.Option("--duration", metavar="TIME", help="Stop after this time; otherwise at Ctrl-C.")
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option(
            "--listen",
            metavar="ADDRESS:PORT",
            help="Offer metrics for Prometheus there, at /metrics: 127.0.0.1:9790. Port 0 takes one that is free.",
        ),
    ] = None,
    listen_anywhere: Annotated[
        bool,
        typer.Option(
            "--listen-anywhere",
            help="Let --listen take an address that other machines can reach; there is no encryption.",
        ),
    ] = False,
    on_incident: Annotated[
        str | None,
        typer.Option(
            "--on-incident",
            metavar="COMMAND",
            help="Run this command when an incident begins and when it ends; it reads JSON.",
        ),
    ] = None,
    period: Period = "week",
    plain: Annotated[bool, typer.Option("--plain", help="Print lines, also on a terminal; no live screen.")] = False,
) -> None:
    """Record a live server.

    Sessions are sampled every second, statements counted every ten seconds, with statistics of the server and its host.
    It only reads, through one connection with short timeouts. Membership in pg_monitor is enough. It goes on when the
    server is restarted. It reports when transactions begin to take longer than usual, and when that ends. On a terminal
    it shows a live screen: throughput, load, statements, blockers.
    """
    from pgstrata.app.watching.endpoint import choose_listen
    from pgstrata.app.watching.watch import Watching, WatchTask
    from pgstrata.app.watching.watch import watch as record
    from pgstrata.report.live.limits import say_limits
    from pgstrata.store.archives.thinning import Keep
    from pgstrata.units import render_count

    def begun(found: Watching) -> None:
        tell(f"recording PostgreSQL {found.version} into {archive}; Ctrl-C ends it")
        for text in say_limits(found.limits):
            tell(f"note: {text}")
        if found.metrics:
            tell(f"metrics: {found.metrics}")
        if screen is not None:
            screen.open()

    screen = None if plain else _screen(archive)
    tell = _say if screen is None else screen.tell

    task = WatchTask(
        dsn=dsn,
        archive=archive,
        keep=Keep(
            detail=round(duration_at(detail, "--keep-seconds")),
            total=round(duration_at(keep, "--keep")),
            size=_size_of(size),
        ),
        query_text=not no_query_text,
        plans=not no_plans,
        host=host,
        seconds=None if duration is None else duration_at(duration, "--duration"),
        listen=choose_listen(listen, anywhere=listen_anywhere),
        on_incident=on_incident,
        rate=rate_of(period),
    )
    try:
        looks = record(task, begun, tell, followers=() if screen is None else (screen,))
    finally:
        if screen is not None:
            screen.close()
    with _unheard():
        print(f"{render_count(looks, 'second')} recorded in {archive}", flush=True)


def _screen(archive: Path) -> "LiveScreen | None":
    """The live screen, where standard output is a terminal that it can be drawn on."""
    from pgstrata.system.terminal import open_terminal

    terminal = open_terminal(sys.stdout, os.environ.get("TERM", ""))
    if terminal is None:
        return None
    from pgstrata.cli.live_screen import LiveScreen
    from pgstrata.cli.live_state import LiveState

    colour = not os.environ.get("NO_COLOR")
    return LiveScreen(terminal, LiveState(archive=str(archive)), _say, colour=colour, keeps=sys.stderr.isatty())


def _say(text: str) -> None:
    with _unheard():
        print(text, file=sys.stderr, flush=True)


@contextmanager
def _unheard() -> Iterator[None]:
    """A terminal that was closed hears nothing more: the recorder ends as after Ctrl-C."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.EIO:
            raise


_PERIODS = {"hour": 3600.0, "day": 86_400.0, "week": 604_800.0, "month": 30 * 86_400.0}


def rate_of(period: str) -> float:
    """False alarms per second; UsageError where there would be more than one an hour."""
    from pgstrata.errors import UsageError

    name = period.strip().lower()
    remedy = "write hour, day, week, month, or a time such as 3d"
    seconds = _PERIODS.get(name) or duration_at(name, "--false-alarms-per", remedy)
    if seconds < _PERIODS["hour"]:
        remedy = "give at least 1h: with more false alarms, nobody could tell them from incidents"
        raise UsageError("the time between false alarms is too short", where="--false-alarms-per", remedy=remedy)
    return 1 / seconds


def _size_of(text: str) -> int:
    from pgstrata.errors import UsageError
    from pgstrata.units import parse_bytes

    try:
        return parse_bytes(text)
    except ValueError as error:
        raise UsageError(str(error), where="--keep-size", remedy="write a size such as 500MB or 2GB") from None


Begin = Annotated[
    str | None,
    typer.Option("--from", metavar="TIME", help="Such as 13:28, within the archive's last 24 hours, or ISO 8601."),
]
End = Annotated[str | None, typer.Option("--to", metavar="TIME", help="The archive's end if not given.")]
Against = Annotated[
    str | None,
    typer.Option(
        "--against",
        metavar="FROM..TO",
        help="Compare with this window, not with the time before; of a study, with the environment of this name.",
        autocompletion=complete_environment,
    ),
]
Source = Annotated[
    Path,
    typer.Argument(
        metavar="ARCHIVE",
        help="The folder that `pgstrata watch` records into, or a study.",
        autocompletion=complete_any,
    ),
]


Report = Annotated[Path | None, typer.Option("--report", metavar="FILE.html", help="Also write a page.")]


def explain(
    archive: Source,
    begin: Begin = None,
    end: End = None,
    against: Against = None,
    environment: Annotated[
        str | None,
        typer.Option(
            "--environment",
            metavar="NAME",
            help="Of a study: explain this environment, not a window.",
            autocompletion=complete_environment,
        ),
    ] = None,
    cell: Annotated[
        str | None,
        typer.Option(
            "--cell",
            metavar="CELL",
            help="Of a study with several cells: this one.",
            autocompletion=complete_cell,
        ),
    ] = None,
    json: Json = False,
    report: Report = None,
    format_: Format = None,
    no_query_text: NoQueryText = False,
) -> None:
    """Explain why a live server was slow.

    It compares a window of an archive with another one, by default the time before. The answer says whether it was
    slower at all, what most likely caused it, where the extra load is, and whether statements were called more often or
    became slower. Of a study it compares an environment with another one, by default the baseline.
    """
    from pgstrata import __version__
    from pgstrata.app.explain import load_explanation
    from pgstrata.app.explain_study import explain_study, is_study
    from pgstrata.errors import UsageError
    from pgstrata.report.live.document import make_explanation
    from pgstrata.report.live.json import explanation_json

    format_ = choose_format(format_)
    of_study = is_study(archive)
    given = (("--from", begin), ("--to", end)) if of_study else (("--environment", environment), ("--cell", cell))
    for option, value in given:
        if value is not None:
            what, remedy = (
                ("a study has environments instead of windows", "use --environment and --against with their names")
                if of_study
                else ("an archive has windows instead of environments", "use --from and --to")
            )
            raise UsageError(what, where=option, remedy=remedy)
    if of_study:
        found = explain_study(archive, environment, against, cell, query_text=not no_query_text)
    else:
        found = load_explanation(archive, begin, end, against, query_text=not no_query_text)
    said = explanation_json(found) if json else None
    tell_document(make_explanation(found, __version__), said, format_, report, private=not of_study)


def tell_document(
    document: "Document", json: str | None, format_: str | None, report: Path | None, *, private: bool = True
) -> None:
    """Write the page, then print the document, or the same for programs; `private`: it tells of a live server."""
    from pgstrata.app.report import write_page

    if report is not None:
        write_page(document, report, option="--report", private=private)
    if json is None:
        print_document(document, format_)
    else:
        print(json, end="")
    if report is not None:
        print(f"report: {report}", file=sys.stderr)
