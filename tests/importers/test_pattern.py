"""Paths as dimensions."""

import re
import time

import pytest

from pgstrata.errors import UsageError
from pgstrata.importers.pattern import parse_pattern

KERNELS = "{kernel}/{scale}/{run}/{mode}-{clients}.log"


@pytest.mark.parametrize(
    ("pattern", "path", "levels"),
    [
        (KERNELS, "4.7-rc1/300/1/read-only-16.log", ("4.7-rc1", "300", "1", "read-only", "16")),
        (KERNELS, "4.7/300/read-only-16.log", None),
        (KERNELS, "4.7/300/1/readonly.log", None),
        (KERNELS, "4.7/300/1/-16.log", None),
        (KERNELS, "4.7/300/1/ro-16.txt", None),
        ("*/bench{scale}/{run}.txt", "aws/bench100/run1.txt", ("100", "run1")),
        ("{a}{b}", None, None),
        ("x.log", "x.log", ()),
        ("x.log", "y.log", None),
    ],
)
def test_a_path_fits_or_does_not(pattern, path, levels):
    if path is None:
        with pytest.raises(UsageError, match="two fields with nothing between them"):
            parse_pattern(pattern)
        return
    found = parse_pattern(pattern).match(path)
    assert (tuple(found.values()) if found is not None else None) == levels


@pytest.mark.parametrize(
    ("pattern", "what"),
    [
        ("{a}/{a}", "has {a} twice"),
        ("{}/x", "has a field '{}', which is not a valid name"),
        ("{a", "has a brace without its counterpart"),
        ("a}", "has a brace without its counterpart"),
        ("{a b}", "has a field '{a b}', which is not a valid name"),
    ],
)
def test_what_is_no_pattern_is_refused(pattern, what):
    with pytest.raises(UsageError, match=re.escape(what)):
        parse_pattern(pattern)


def test_a_name_made_to_be_slow_is_not():
    pattern = parse_pattern("{a}-{b}-{c}-{d}-{e}-{f}-{g}-{h}x")
    begin = time.process_time()
    assert pattern.match("-" * 100_000) is None
    assert time.process_time() - begin < 1


@pytest.mark.parametrize(
    ("pattern", "path", "levels"),
    [
        ("{bench}_{started}.summary.json", "tpcc_2024-04-05_07-34-47.summary.json", ("tpcc", "2024-04-05_07-34-47")),
        ("pgbench_{version}_{mode}_{started}.log", "pgbench_13_prepared_20250815_130830.log", ("13", "prepared", "20250815_130830")),
        ("{guc}-{started}/pgbench.log", "0-1000-1725611035/pgbench.log", ("0-1000", "1725611035")),
        ("{bench}-{started}", "tpcc-2024-04-05-07-34-47", ("tpcc", "2024-04-05-07-34-47")),
        ("{bench}_{started}", "tpcc_a_b", ("tpcc_a", "b")),
    ],
)  # fmt: skip
def test_a_field_of_the_time_takes_all_of_it(pattern, path, levels):
    assert tuple(parse_pattern(pattern).match(path).values()) == levels


def test_a_name_made_to_be_slow_is_not_where_times_are_looked_for():
    begin = time.process_time()
    parse_pattern("{a}-{b}-{started}-{c}x").match("1-" * 50_000)
    assert time.process_time() - begin < 1
