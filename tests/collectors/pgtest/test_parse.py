"""What the programs of PostgreSQL that measure a host print, and what is read from it."""

import json
from pathlib import Path

import pytest

from pgstrata.collectors.pgtest import parse_fsync, parse_timing, run_timing
from pgstrata.errors import ParseError
from pgstrata.hosts.local import LocalHost
from pgstrata.model import sizes

CAPTURES = Path(__file__).parents[2] / "captures"


def cases(program):
    folders = sorted(path.parent for path in (CAPTURES / program).glob("*/*/output.txt"))
    return [pytest.param(folder, id=f"{folder.parent.name}-{folder.name}") for folder in folders]


@pytest.mark.parametrize("folder", cases("pg_test_fsync"))
def test_the_cost_of_each_method_is_read_from_the_first_table(folder):
    expected = json.loads((folder / "expected.json").read_text())["operations_per_second"]
    costs = parse_fsync((folder / "output.txt").read_text())
    assert list(costs) == list(expected)
    assert costs == pytest.approx({method: 1 / rate for method, rate in expected.items()})


@pytest.mark.parametrize("folder", cases("pg_test_timing"))
def test_the_time_of_a_look_at_the_clock_is_read(folder):
    expected = json.loads((folder / "expected.json").read_text())["nanoseconds"]
    assert parse_timing((folder / "output.txt").read_text()) == pytest.approx(expected * 1e-9)


@pytest.mark.parametrize(
    ("line", "nanoseconds"),
    [
        ("Per loop time including overhead: 35.96 nsec", 35.96),  # 9.2, by its manual
        # 19, by its manual: further clocks may follow the system's
        ("Average loop time including overhead: 16.59 ns\n\nAverage loop time including overhead: 9.02 ns", 16.59),
    ],
)
def test_other_versions_say_it_in_other_words(line, nanoseconds):
    assert parse_timing(f"Testing timing overhead for 1 second.\n{line}\n") == pytest.approx(nanoseconds * 1e-9)


def test_a_program_that_was_stopped_in_its_first_table_gives_what_it_has():
    text = (CAPTURES / "pg_test_fsync/18/stopped/output.txt").read_text()
    assert list(parse_fsync(text[: text.index("fsync_writethrough")])) == ["open_datasync", "fdatasync", "fsync"]


@pytest.mark.parametrize("parse", [parse_fsync, parse_timing])
@pytest.mark.parametrize("text", ["", "Segmentation fault\nfurther lines"])
def test_what_is_no_such_output_is_quoted(parse, text):
    with pytest.raises(ParseError) as caught:
        parse(text)
    assert repr(text.partition("\n")[0]) in caught.value.what


def test_its_memory_is_limited(tmp_path):
    program = tmp_path / "bin" / "pg_test_timing"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho "Average loop time including overhead: $(ulimit -v) ns"\n')
    program.chmod(0o755)
    assert f"{sizes.PROGRAM >> 10} ns" in run_timing(LocalHost(), str(tmp_path))
