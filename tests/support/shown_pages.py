"""Which pages tests look at in a browser, at which sizes, and which of them `make test` leaves to `make test-browser`."""

from __future__ import annotations

import pytest

from page_checks import DESK, PHONE

# environments, cells, whether names are long
_FEW = ((2, 1, False), (13, 12, True))
_OTHERS = (
    *((environments, cells, False) for environments in (2, 13, 60) for cells in (1, 12, 72)),
    *((2, 1, True), (60, 1, True), (2, 72, True)),
)


def _name(environments, cells, long):
    return f"{environments}x{cells}{'-long' if long else ''}"


STUDIES = {_name(*size): size for size in (*_FEW, *_OTHERS)}
CHARTS = ("rich", "rich-long", "slices", "slices-long", "decide", "runs", "merged", "search")
LIVE = ("explain", "window", "periods", "incidents", "correlate")
SERVED = ("list", "framed", "beside")
_SHOWN = {*(_name(*size) for size in _FEW), "rich", "rich-long", "merged", "explain", "list"}
SIZES = {"desk": DESK, "phone": PHONE}


def of_pages(*names):
    """Parametrise a test by pages; most of them are for `make test-browser` alone."""
    marks = {name: () if name in _SHOWN else (pytest.mark.browser("all"),) for name in names}
    return pytest.mark.parametrize("name", [pytest.param(name, marks=marks[name]) for name in names])


of_sizes = pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)


def make_page(name, archive):
    """The page of that name; `archive` makes an archive, where it is of one."""
    import forged_pages

    if name in STUDIES:
        environments, cells, long = STUDIES[name]
        return forged_pages.study_page(environments, cells, long=long)
    if name in LIVE:
        return forged_pages.live_page(name, archive())
    make = {
        "rich": forged_pages.rich_page,
        "rich-long": lambda: forged_pages.rich_page(long=True),
        "slices": lambda: forged_pages.rich_page(sliced=True),
        "slices-long": lambda: forged_pages.rich_page(sliced=True, long=True),
        "runs": forged_pages.runs_page,
        "decide": forged_pages.decision_page,
        "merged": forged_pages.merged_page,
        "search": forged_pages.search_page,
        "list": forged_pages.list_page,
        "framed": forged_pages.framed_page,
        "beside": forged_pages.beside_page,
    }
    return make[name]()
