"""New lines of a live server's log: which events they tell. Captures are real servers' logs, shortened."""

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgstrata.collectors.live.log import LogReader
from pgstrata.model.archive import EventKind

CAPTURES = Path(__file__).parents[2] / "captures" / "serverlog"
CASES = sorted(path.parent for path in CAPTURES.glob("*/*/expected.json"))
MOMENT = 1_795_710_000


def read(text, reader=None):
    return {each.kind: each for each in (reader or LogReader()).read(text.encode(), MOMENT)}


@pytest.mark.parametrize("case", CASES, ids=[case.parent.name for case in CASES])
def test_every_capture_gives_the_expected_events(case):
    text = (case / "server.log").read_bytes()
    found = Counter({each.kind: each.times for each in LogReader().read(text, MOMENT)})
    expected = json.loads((case / "expected.json").read_text())
    assert found[EventKind.CHECKPOINT] == expected.get("checkpoint_starts", 0)
    assert found[EventKind.CHECKPOINT_DONE] == expected.get("checkpoint_ends", 0)
    assert found[EventKind.AUTOVACUUM] == expected.get("autovacuums_done", 0)
    assert found[EventKind.TEMPORARY] == expected.get("temporary_files", 0)
    assert found[EventKind.DEADLOCK] == expected.get("deadlocks", 0)
    failures = (EventKind.DEADLOCK, EventKind.ERRORS, EventKind.CANCELED, EventKind.REFUSED)
    assert sum(found[kind] for kind in failures) == expected.get("errors", 0)


@pytest.mark.parametrize(
    ("line", "kind", "detail"),
    [
        ("2026-11-28 01:02:03 CET [7] LOG:  checkpoint starting: wal", EventKind.CHECKPOINT, "wal"),
        ("user=a,db=b,app=c LOG:  checkpoint complete: wrote 36 buffers (0.2%); x", EventKind.CHECKPOINT_DONE, "wrote 36 buffers"),
        ("LOG:  restartpoint starting: time", EventKind.CHECKPOINT, "time"),
        ("[7]: ERROR:  canceling statement due to statement timeout", EventKind.CANCELED, "due to statement timeout"),
        ("< FATAL:  sorry, too many clients already", EventKind.REFUSED, ""),
        ("x FATAL:  the database system is starting up", EventKind.REFUSED, "starting up"),
        ("x LOG:  process 7 still waiting for ShareLock on transaction 9 after 1000.1 ms", EventKind.LOCK_WAIT, "ShareLock"),
        ("x LOG:  server process (PID 7) was terminated by signal 9: Killed", EventKind.CRASHED, "server process"),
        ('x LOG:  temporary file: path "base/pgsql_tmp/x", size 1000', EventKind.TEMPORARY, "1000 bytes"),
        ('x LOG:  automatic vacuum of table "s.p.t": index scans: 0', EventKind.AUTOVACUUM, 'vacuum of table "s.p.t"'),
        (
            '2026-11-28 01:02:03.1 UTC,"u","d",7,"[local]",1.2,3,"UPDATE",2026,4/5,6,ERROR,40P01,"deadlock detected","x",,',
            EventKind.DEADLOCK, "",
        ),
        (
            '{"timestamp":"2026","pid":7,"error_severity":"ERROR","state_code":"23505","message":"duplicate key \\"x\\""}',
            EventKind.ERRORS, "",
        ),
    ],
)  # fmt: skip
def test_lines_of_all_formats_are_read(line, kind, detail):
    ((found, event),) = read(line + "\n").items()
    assert (found, event.detail, event.times, event.moment) == (kind, detail, 1, MOMENT)


@pytest.mark.parametrize(
    "line",
    [
        "x STATEMENT:  SELECT 'ERROR:  not an error'",
        "\tProcess 6277: UPDATE d SET v = 1; ERROR:  x",
        "x DETAIL:  LOG:  checkpoint starting: wal",
        "x LOG:  duration: 1.2 ms  statement: SELECT 'checkpoint starting: wal'",
        "x WARNING:  deadlock detected",
        '{"error_severity": 7}',
        "{broken",
        "",
    ],
)
def test_what_is_no_event_is_left_out(line):
    assert read(line + "\n") == {}


def test_events_of_a_second_are_counted_together_and_tell_the_first():
    found = read("x ERROR:  a\n" * 3 + 'x LOG:  temporary file: path "a", size 5\n' * 2)
    assert found[EventKind.ERRORS].times == 3
    assert (found[EventKind.TEMPORARY].times, found[EventKind.TEMPORARY].detail) == (2, "10 bytes")


def test_a_line_whose_end_comes_later_is_read_once():
    reader = LogReader()
    assert read("x LOG:  checkpoint st", reader) == {}
    assert set(read("arting: time\nx ERR", reader)) == {EventKind.CHECKPOINT}
    assert set(read("OR:  a\n", reader)) == {EventKind.ERRORS}


def test_no_text_of_a_statement_and_no_value_is_kept():
    secret = "hunter2-secret"
    lines = (
        f"x ERROR:  invalid input syntax for type integer: \"{secret}\"\nx STATEMENT:  SELECT '{secret}'\n"
        f'x FATAL:  password authentication failed for user "{secret}"\n'
        f"x ERROR:  canceling statement due to user request {secret.upper()}\n"
    )
    assert not any(secret in event.detail.lower() for event in read(lines).values())


@given(st.binary(max_size=400))
def test_any_bytes_are_read(text):
    for event in LogReader().read(text + b"\n", MOMENT):
        assert event.times >= 1


@pytest.mark.parametrize("line", ['{"a":' + "[" * 4000, '{"":' * 1000])
def test_a_line_that_is_nested_too_deep_to_be_read_is_left_out(line):
    found = read(f"{line}\nERROR:  division by zero\n")
    assert found[EventKind.ERRORS].times == 1
