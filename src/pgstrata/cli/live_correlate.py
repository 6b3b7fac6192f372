"""`pgstrata correlate`: which waits of a live server go with what its host did."""

from pgstrata.cli.live import Archive, Begin, End, Format, Report, check_format, tell_document
from pgstrata.cli.options import Json


def correlate(
    archive: Archive,
    begin: Begin = None,
    end: End = None,
    json: Json = False,
    report: Report = None,
    format_: Format = None,
) -> None:
    """Find which wait events of a window go with the host, the server or throughput, and which of them leads.

    Every wait event is compared with every series, at lags of up to a minute. Neighbouring steps resemble each other,
    and so many pairs agree by chance: the answer takes both into account. It needs ten minutes at least.
    """
    from pgstrata import __version__
    from pgstrata.app.correlate import load_associations
    from pgstrata.report.live.correlate import associations_json, make_associations_document

    check_format(format_)
    found = load_associations(archive, begin, end)
    tell_document(
        make_associations_document(found, __version__), associations_json(found) if json else None, format_, report
    )
