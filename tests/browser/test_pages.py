"""Every page on a desk and on a phone, light and dark: nothing overflows, overlaps, or is hard to read."""

import pytest

from page_checks import look
from shown_pages import CHARTS, LIVE, SERVED, STUDIES, of_pages, of_sizes

pytestmark = pytest.mark.browser


@of_sizes
@of_pages(*STUDIES, *CHARTS, *LIVE, *SERVED)
def test_nothing_overflows_overlaps_or_is_hard_to_read(tab, page_of, keep, name, size):
    page = page_of(name)
    keep(page, size)
    assert look(tab, page, size) == []
