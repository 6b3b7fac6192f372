"""What leaves `make test` is in `make soak`: every mark names a part, and every part of tests has some."""

import re
from pathlib import Path

from parts import PARTS

TESTS = Path(__file__).parent
SOAK = TESTS.parent / "soak"


def test_every_part_of_tests_has_some_and_every_mark_names_a_part():
    marked = {
        name
        for path in TESTS.rglob("test_*.py")
        if path != Path(__file__)
        for name in re.findall(r'mark\.soak\("([^"]+)"\)', path.read_text())
    }
    assert marked == {name for name, part in PARTS.items() if "--soak" in part.argv}


def test_the_folder_of_a_compiled_search_is_kept_so_that_it_goes_on_where_it_was():
    assert "--folder" in PARTS["bisect-compiled"].argv


def test_no_script_hides_what_tests_share():
    """Both folders are on the path of a part."""
    assert not {path.name for path in SOAK.glob("*.py")} & {path.name for path in (TESTS / "support").glob("*.py")}
