"""`pgstrata correlate`: which waits of a live server go with what its host did."""

from pgstrata.cli.documents import Format, choose_format
from pgstrata.cli.live import Archive, Begin, End, Report, tell_document
from pgstrata.cli.options import Json


def correlate(
    archive: Archive,
    begin: Begin = None,
    end: End = None,
    json: Json = False,
    report: Report = None,
    format_: Format = None,
) -> None:
    """Find what rises and falls with wait events.

    Every wait event is compared with throughput and with every series of the host and the server, at lags of up to a
    minute. The answer says which of the two leads. It allows for series whose neighbouring values resemble each other,
    and for pairs that agree by chance. It needs at least ten minutes of records.
    """
    from pgstrata import __version__
    from pgstrata.app.correlate import load_associations
    from pgstrata.report.live.correlate import associations_json, make_associations_document

    format_ = choose_format(format_)
    found = load_associations(archive, begin, end)
    tell_document(
        make_associations_document(found, __version__), associations_json(found) if json else None, format_, report
    )
