import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgstrata.collectors.waits.sampler import parse_profile, parse_rows
from pgstrata.errors import ParseError
from pgstrata.model.activity import SessionState
from pgstrata.ports.collector import Window

CAPTURES = Path(__file__).parents[2] / "captures" / "waits"
CASES = sorted(path.parent for path in CAPTURES.glob("*/*/expected.json"))
WINDOW = Window(
    seconds=2.0, transactions=100, client_cpu=1.0, postmaster_pid=None, transport_pids=(), server_version=150000
)
LAUNCHER = 9


def look(time, *sessions, launcher=None, ours=1):
    """A look: of each session its samples by wait; the launcher always waits, a hundred times a second."""
    rows = [
        (pid, ours, wait.replace("/", "\t"), samples)
        for pid, waits in enumerate(sessions, 1)
        for wait, samples in waits.items()
    ]
    rows.append((LAUNCHER, 0, "\t", int(100 * time) if launcher is None else launcher))
    return "".join("\t".join(map(str, (time, *row, len(rows)))) + "\n" for row in rows)


def parse(*looks, **window):
    return parse_profile("".join(looks).encode(), replace(WINDOW, **window))


def counts(waits):
    names = {
        f"{item.wait_type}/{item.event}" if item.state is SessionState.WAITING else item.state.value: item.samples
        for item in waits.counts
    }
    assert len(names) == len(waits.counts)
    return names


@pytest.mark.parametrize("case", CASES, ids=[f"{case.parent.name}-{case.name}" for case in CASES])
def test_every_capture_gives_the_expected_counts(case):
    expected = json.loads((case / "expected.json").read_text())
    found = parse_profile((case / "waits.samples").read_bytes(), replace(WINDOW, seconds=expected["seconds"]))
    assert found.remarks == ()
    assert counts(found.waits) == expected["counts"]
    assert found.waits.hertz == pytest.approx(expected["hertz"], abs=0.05)


def test_what_no_event_was_counted_for_is_running():
    found = parse(
        look(10.0, {"Client/ClientRead": 500, "IO/WALSync": 40}, {"Client/ClientRead": 3}),
        look(12.0, {"Client/ClientRead": 550, "IO/WALSync": 90}, {"Client/ClientRead": 103, "LWLock/WALWrite": 20}),
    )
    assert found.waits.hertz == pytest.approx(100)
    assert counts(found.waits) == {"client": 150, "IO/WalSync": 50, "LWLock/WALWrite": 20, "running": 180}


def test_where_running_is_counted_too_nothing_is_left_over():
    found = parse(look(10.0, {"/": 5, "IO/WALSync": 40}), look(12.0, {"/": 125, "IO/WALSync": 120}))
    assert counts(found.waits) == {"running": 120, "IO/WalSync": 80}


def test_what_comes_before_and_after_all_sessions_are_there_does_not_count():
    both = {"Client/ClientRead": 10}, {"Client/ClientRead": 10}
    later = {"Client/ClientRead": 30}, {"Client/ClientRead": 110}
    found = parse(look(9.5), look(9.7, {"Client/ClientRead": 7}), look(10.0, *both), look(11.0, *both), look(12.0, *later),
                  look(12.5, {"Client/ClientRead": 90}))  # fmt: skip
    assert counts(found.waits) == {"client": 120, "running": 280}


def test_a_cut_last_look_is_left_out():
    text = (look(10.0, {"/": 0}) + look(12.0, {"IO/WALSync": 90}) + look(12.5, {"IO/WALSync": 120})).encode()
    for end in range(text.index(b"12.5"), len(text) - 1):
        assert counts(parse_profile(text[:end], WINDOW).waits)["IO/WalSync"] == 90


@pytest.mark.parametrize(
    ("looks", "why"),
    [
        ((), ("short", 0.0)),
        ((look(10.0, {"IO/WALSync": 1}),), ("short", 0.0)),
        ((look(10.0, {"IO/WALSync": 1}), look(11.0, {"IO/WALSync": 50})), ("short", 1.0)),
        ((look(10.0, {"IO/WALSync": 9}), look(12.0, {"IO/WALSync": 8})), ("reset", 0.0)),
        ((look(10.0, {"IO/WALSync": 9}), look(12.0, {"/": 0})), ("reset", 0.0)),
        ((look(10.0, {"/": 0}), look(12.0, {"/": 0}, launcher=5)), ("reset", 0.0)),
        ((look(10.0, {"/": 0}), look(12.0, {"/": 0}, launcher=1015)), ("rare", 7.5)),
        ((look(10.0, {"/": 0}), look(12.0, {"/": 0}, launcher=1000)), ("rare", 0.0)),
        ((look(10.0, {"/": 0}), look(11.0, {"/": 0}, {"/": 0}), look(12.0, {"/": 0})), ("reconnected", 0.0)),
    ],
)
def test_what_cannot_be_subtracted_is_not_used_and_said_so(looks, why):
    found = parse(*looks)
    assert found.waits is None
    (remark,) = found.remarks
    assert (remark.code, remark.how, round(remark.value + remark.seconds, 1)) == ("samples_missing", *why)


@pytest.mark.parametrize("text", [b"garbage\n", b"1\t2\n", b"\0\n", b"x" * 100_000 + b"\n", b"a\t1\t1\t\t\t3\t1\n"])
def test_garbage_is_refused_with_its_line(text):
    with pytest.raises(ParseError, match="profile"):
        parse_profile(text, WINDOW)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=5))
def test_samples_of_all_sessions_add_up_to_looks_times_sessions(waits):
    first = look(10.0, *({"Client/ClientRead": 7} for _ in waits))
    last = look(12.0, *({"Client/ClientRead": 7 + client, "IO/WALSync": wait} for client, wait in waits))
    found = parse(first, last)
    assert sum(item.samples for item in found.waits.counts) == 200 * len(waits)


def test_rows_of_other_processes_are_no_sessions():
    assert [row.ours for row in parse_rows(look(1.0, {"/": 0}, {"/": 1}).encode())] == [True, True, False]
