"""One browser for all tests, pages that are made once, and pictures of them for those who ask."""

import os
from functools import cache
from pathlib import Path

import pytest

import chromium
import page_checks
from shown_pages import make_page


@pytest.fixture(scope="session")
def tab(tmp_path_factory):
    if chromium.PROGRAM is None:
        pytest.skip("there is no Chromium")
    with chromium.opened(tmp_path_factory.mktemp("profile")) as tab:
        yield tab


@pytest.fixture(scope="session")
def page_of(tmp_path_factory):
    """The file of a page by its name."""
    folder = tmp_path_factory.mktemp("pages")

    @cache
    def archive():
        from forged_pages import record

        return record(folder / "shop")

    @cache
    def page_of(name):
        page = folder / f"{name}.html"
        page.write_text(make_page(name, archive), encoding="utf-8")
        return page

    return page_of


@pytest.fixture(scope="session")
def keep(tab):
    """Keeps pictures of a page where PICTURES=FOLDER asks for them."""
    wanted = os.environ.get("PICTURES")
    return (lambda *page: page_checks.keep_pictures(Path(wanted), tab, *page)) if wanted else lambda *_: None
