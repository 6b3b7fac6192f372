"""Pages are used without a mouse."""

import pytest

from page_checks import show, tab_through
from shown_pages import CHARTS, LIVE, SERVED, STUDIES, of_pages, of_sizes

pytestmark = pytest.mark.browser


@of_sizes
@of_pages(*STUDIES, *CHARTS, *LIVE, *SERVED)
def test_everything_that_can_be_used_is_reached_in_its_order_and_shows_that_it_is(tab, page_of, name, size):
    show(tab, page_of(name), size)
    assert tab_through(tab) == []


@of_sizes
@of_pages("13x12-long", "explain")
def test_what_was_folded_is_reached_when_it_is_open(tab, page_of, name, size):
    show(tab, page_of(name), size)
    tab.run("pageChecks.openAll()")
    assert tab_through(tab) == []


@pytest.mark.parametrize("key", ["Enter", " "])
def test_what_is_folded_opens_and_closes_by_a_key(tab, page_of, key):
    show(tab, page_of("2x1"), (1400, 900))
    tab.run("document.querySelector('main details:not([open]) > summary').focus()")
    is_open = "document.activeElement.parentElement.open"
    tab.press(key)
    assert tab.run(is_open) is True
    tab.press(key)
    assert tab.run(is_open) is False
