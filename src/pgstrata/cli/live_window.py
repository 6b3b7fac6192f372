"""`pgstrata window`: what a window of an archive holds, by itself or beside another one, or of one wait event."""

from typing import Annotated, Final

import typer

from pgstrata.cli.documents import Format, choose_format
from pgstrata.cli.live import Archive, Begin, End, Report, tell_document
from pgstrata.cli.options import Json, NoQueryText

_AT_LEAST: Final = 100

Beside = Annotated[
    str | None,
    typer.Option("--against", metavar="FROM..TO", help="Also show this window, with the differences."),
]
Event = Annotated[
    str | None,
    typer.Option(
        "--event",
        metavar="TYPE/EVENT",
        help="Which statements waited for this event, such as LWLock/BufferMapping; Lock: for any event of this type.",
    ),
]
AtLeast = Annotated[
    int | None,
    typer.Option(
        "--at-least",
        metavar="N",
        min=1,
        help=f"With --event: list statements with so many samples, {_AT_LEAST} if not given.",
    ),
]


def window(
    archive: Archive,
    begin: Begin = None,
    end: End = None,
    against: Beside = None,
    event: Event = None,
    at_least: AtLeast = None,
    json: Json = False,
    report: Report = None,
    format_: Format = None,
    no_query_text: NoQueryText = False,
) -> None:
    """Show what a server did in a window of time.

    It shows load, statements, blockers, server and host. With --against it shows two windows side by side: each figure
    with its difference, and whether that may be chance. With --event it lists the statements that waited for this
    event.
    """
    from pgstrata import __version__
    from pgstrata.app.explain import load_profile
    from pgstrata.errors import UsageError
    from pgstrata.report.live.profile import make_profile_document, profile_json

    format_ = choose_format(format_)
    if at_least is not None and event is None:
        raise UsageError("it was given without --event", where="--at-least", remedy="add --event TYPE/EVENT")
    if event is not None:
        if against is not None:
            remedy = "leave out --against, or ask for each window by itself"
            raise UsageError("--event lists the statements of one window only", where="--event", remedy=remedy)
        from pgstrata.app.waiting import load_waits
        from pgstrata.report.live.waiting import make_waits_document, waits_json

        waits = load_waits(archive, begin, end, event, at_least or _AT_LEAST, query_text=not no_query_text)
        tell_document(make_waits_document(waits, __version__), waits_json(waits) if json else None, format_, report)
        return
    if against is not None:
        from pgstrata.app.explain import load_periods
        from pgstrata.report.live.periods import make_periods_document, periods_json

        both = load_periods(archive, begin, end, against, query_text=not no_query_text)
        tell_document(make_periods_document(both, __version__), periods_json(both) if json else None, format_, report)
        return
    found = load_profile(archive, begin, end, query_text=not no_query_text)
    tell_document(make_profile_document(found, __version__), profile_json(found) if json else None, format_, report)
