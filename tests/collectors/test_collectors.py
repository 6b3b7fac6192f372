"""What every collector makes of two captures: values or a refusal, whatever is there, and never anything else."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from damage import DAMAGES, damaged
from pgstrata.app.wiring import make_collectors
from pgstrata.errors import ParseError
from pgstrata.ports.collector import CountsQueries, DoubtsCaptures, SeesClients, Window
from pgstrata.testing_samplers import check_measurements, without_io

CAPTURES = Path(__file__).parents[1] / "captures"
COLLECTORS = {collector.name: collector for collector in make_collectors()}
KNOWN = {
    "canary": (b"seconds 0.041\n", b"seconds 0.042\n"),
    "pgstat": CAPTURES / "pgstat" / "18" / "simple-update",
    "queries": CAPTURES / "queries" / "18" / "mix",
    "procfs": CAPTURES / "procfs" / "6.18" / "simple-update",
    "client.procfs": CAPTURES / "procfs" / "6.18" / "simple-update",
}


def captures_of(name):
    found = KNOWN[name]
    if isinstance(found, tuple):
        return found
    return tuple(next(found.glob(f"{when}.*")).read_bytes() for when in ("before", "after"))


def window_of(name):
    fields = json.loads((KNOWN["procfs"] / "window.json").read_text())
    window = Window(**{key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()})
    return replace(window, apart=True) if name.startswith("client.") else window


def make(name, before, after, window):
    """Everything that a collector makes of captures; None where it refuses."""
    collector = COLLECTORS[name]
    try:
        found = [collector.parse(before, after, window)]
        check_measurements(found[0])
        found += [collector.parse_queries(before, after, window)] if isinstance(collector, CountsQueries) else []
        found += [collector.doubt(before, after)] if isinstance(collector, DoubtsCaptures) else []
        found += [collector.see_clients(before, after, window)] if isinstance(collector, SeesClients) else []
    except ParseError:
        return None
    return found


def test_every_collector_that_is_wired_is_looked_at():
    assert COLLECTORS.keys() == KNOWN.keys()


@pytest.mark.parametrize("name", KNOWN)
def test_the_same_captures_give_the_same_answer_without_a_look_at_the_world(name):
    captures, window = captures_of(name), window_of(name)
    first = make(name, *captures, window)
    with without_io():
        again = make(name, *captures, window)
    assert first is not None
    assert repr(first) == repr(again)


@pytest.mark.parametrize("name", KNOWN)
def test_captures_that_were_exchanged_or_are_equal_or_empty_are_no_error(name):
    before, after = captures_of(name)
    assert make(name, after, before, window_of(name)) is not None
    assert make(name, before, before, window_of(name)) is not None
    for pair in ((b"", after), (before, b""), (b"", b"")):
        make(name, *pair, window_of(name))


@pytest.mark.parametrize("name", KNOWN)
@given(first=st.booleans(), damages=DAMAGES)
def test_of_damaged_captures_there_are_values_or_a_refusal(name, first, damages):
    before, after = captures_of(name)
    pair = (damaged(before, damages), after) if first else (before, damaged(after, damages))
    make(name, *pair, window_of(name))


@pytest.mark.parametrize("name", KNOWN)
@given(before=st.binary(max_size=100), after=st.binary(max_size=100))
def test_of_any_bytes_there_are_values_or_a_refusal(name, before, after):
    make(name, before, after, window_of(name))


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("odd", [{"transactions": 0}, {"seconds": 0.0}, {"seconds": 1e-9}, {"postmaster_pid": None}])
def test_odd_windows_break_nothing(name, odd):
    make(name, *captures_of(name), replace(window_of(name), **odd))
