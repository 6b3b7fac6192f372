"""Times as tools, and names of files, have them."""

import pytest

from pgstrata.sources.moments import parse_moment, parse_moment_in_name


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("Fri Jul 05 09:55:26 BST 2019", "2019-07-05T09:55:26+00:00"),
        ("Fri Jul  5 09:55:26 2019", "2019-07-05T09:55:26+00:00"),
        ("Fri Jul 05 09:55:26 +0800 2019", "2019-07-05T09:55:26+08:00"),
        ("2021/10/29", "2021-10-29T00:00:00+00:00"),
        ("1712324027635", "2024-04-05T13:33:47.635000+00:00"),
    ],
)
def test_times_of_tools(text, moment):
    assert parse_moment(text).isoformat() == moment


@pytest.mark.parametrize(
    "text", ["Fri Jux 05 09:55:26 BST 2019", "Fri Feb 31 09:55:26 2019", "60", "12345678", "", "now"]
)
def test_what_is_no_time(text):
    assert parse_moment(text) is None


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("20240405", "2024-04-05T00:00:00+00:00"),
        ("20240405-1754", "2024-04-05T17:54:00+00:00"),
        ("2024-04-05_07-34-47", "2024-04-05T07:34:47+00:00"),
        ("20250815_130830", "2025-08-15T13:08:30+00:00"),
        ("202404051754", "2024-04-05T17:54:00+00:00"),
        ("20240405T073447Z", "2024-04-05T07:34:47+00:00"),
        ("1725611035", "2024-09-06T08:23:55+00:00"),
        ("2024-04-05T07:34:47+02:00", "2024-04-05T07:34:47+02:00"),
    ],
)
def test_times_in_names(text, moment):
    assert parse_moment_in_name(text).isoformat() == moment


@pytest.mark.parametrize("text", ["10182021_1225", "130830", "run1", "20241345", "20240405-2599", ""])
def test_names_without_a_time(text):
    assert parse_moment_in_name(text) is None
