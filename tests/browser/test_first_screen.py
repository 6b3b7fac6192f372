"""What a reader looks for first is seen without scrolling."""

import pytest

from page_checks import DESK, PHONE, read_first_screen
from shown_pages import LIVE, STUDIES, of_pages

pytestmark = pytest.mark.browser


@of_pages(*STUDIES)
def test_answer_interval_controls_and_matrix_are_on_the_first_screen_of_a_desk(tab, page_of, name):
    bottoms = read_first_screen(tab, page_of(name), DESK)
    assert all(bottoms.values()), bottoms
    assert max(bottoms.values()) <= DESK[1], bottoms


@of_pages(*STUDIES)
def test_answer_and_interval_are_on_the_first_screen_of_a_phone(tab, page_of, name):
    bottoms = read_first_screen(tab, page_of(name), PHONE)
    assert bottoms["interval"], bottoms
    assert bottoms["answer"] <= PHONE[1], bottoms


@of_pages("decide", "merged")
def test_pages_of_tables_and_merged_studies_begin_with_answer_and_matrix(tab, page_of, name):
    """The intervals of many environments of a table stand in the matrix alone."""
    bottoms = read_first_screen(tab, page_of(name), DESK)
    assert max(bottoms["answer"], bottoms["matrix"]) <= DESK[1], bottoms
    assert bottoms["interval"] or name == "decide", bottoms


@of_pages("decide", "merged", "search")
def test_their_answer_is_on_the_first_screen_of_a_phone(tab, page_of, name):
    assert read_first_screen(tab, page_of(name), PHONE)["answer"] <= PHONE[1]


@of_pages(*LIVE)
def test_what_is_said_of_a_live_server_is_on_the_first_screen_of_a_phone(tab, page_of, name):
    assert read_first_screen(tab, page_of(name), PHONE)["answer"] <= PHONE[1]
