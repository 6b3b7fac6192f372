"""`pgstrata incidents`: when a live server was slow."""

from pgstrata.cli.documents import Format, choose_format
from pgstrata.cli.live import Archive, Begin, End, Period, Report, rate_of, tell_document
from pgstrata.cli.options import Json, NoQueryText


def incidents(
    archive: Archive,
    begin: Begin = None,
    end: End = None,
    period: Period = "week",
    json: Json = False,
    report: Report = None,
    format_: Format = None,
    no_query_text: NoQueryText = False,
) -> None:
    """Find out when a live server was slow.

    It searches an archive for periods that were slower than usual. The usual values are those of the hour before and,
    from the fourth day on, of the same time of former days. More demand is not an incident; it is listed separately.
    """
    from pgstrata import __version__
    from pgstrata.app.incidents import load_incidents
    from pgstrata.report.live.incidents import make_incidents
    from pgstrata.report.live.incidents_json import incidents_json

    format_ = choose_format(format_)
    found = load_incidents(archive, begin, end, rate=rate_of(period), query_text=not no_query_text)
    tell_document(make_incidents(found, __version__), incidents_json(found) if json else None, format_, report)
